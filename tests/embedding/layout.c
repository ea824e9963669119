/* Prints the sizes and offsets of the public structs, a line each: "rc_row.data 0".
 * With LAYOUT_CAPI also those of rankcore_capi.h, whose functions it never calls. */
#ifdef LAYOUT_CAPI
#include "rankcore_capi.h"
#endif
#include <stddef.h>
#include <stdio.h>

#include "rankcore.h"

#define SIZE(type) printf(#type " %d\n", (int)sizeof(type))
#define OFFSET(type, field) printf(#type "." #field " %d\n", (int)offsetof(type, field))
#define CONSTANT(name) printf(#name " %d\n", (int)(name))

int main(void)
{
    CONSTANT(RANKCORE_ABI);
    CONSTANT(RC_FLOAT64);
    CONSTANT(RC_FLOAT32);
    CONSTANT(RC_TIE_HIGH);
    CONSTANT(RC_TIE_LOW);
    SIZE(rc_row);
    OFFSET(rc_row, data);
    OFFSET(rc_row, indices);
    OFFSET(rc_row, n);
    OFFSET(rc_row, dtype);
    SIZE(rc_rows);
    OFFSET(rc_rows, data);
    OFFSET(rc_rows, indices);
    OFFSET(rc_rows, indptr);
    OFFSET(rc_rows, stride);
    OFFSET(rc_rows, n_rows);
    OFFSET(rc_rows, n_features);
    OFFSET(rc_rows, dtype);
    SIZE(rc_prank);
    OFFSET(rc_prank, weights);
    OFFSET(rc_prank, thresholds);
    OFFSET(rc_prank, n_features);
    OFFSET(rc_prank, n_ranks);
    SIZE(rc_linear);
    OFFSET(rc_linear, weights);
    OFFSET(rc_linear, intercept);
    OFFSET(rc_linear, n_features);
    SIZE(rc_cusum);
    OFFSET(rc_cusum, weights);
    OFFSET(rc_cusum, thresholds);
    OFFSET(rc_cusum, n_features);
    OFFSET(rc_cusum, n_ranks);
    OFFSET(rc_cusum, tie);
    CONSTANT(RC_KERNEL_LINEAR);
    CONSTANT(RC_KERNEL_POLY);
    CONSTANT(RC_KERNEL_RBF);
    SIZE(rc_kernel);
    OFFSET(rc_kernel, gamma);
    OFFSET(rc_kernel, coef0);
    OFFSET(rc_kernel, kind);
    OFFSET(rc_kernel, degree);
    SIZE(rc_kernel_model);
    OFFSET(rc_kernel_model, kernel);
    OFFSET(rc_kernel_model, support);
    OFFSET(rc_kernel_model, norms);
    OFFSET(rc_kernel_model, coefs);
    OFFSET(rc_kernel_model, thresholds);
    OFFSET(rc_kernel_model, n_outputs);
    OFFSET(rc_kernel_model, n_ranks);
    OFFSET(rc_kernel_model, tie);
    SIZE(rc_stumps);
    OFFSET(rc_stumps, offsets);
    OFFSET(rc_stumps, thresholds);
    OFFSET(rc_stumps, values);
    OFFSET(rc_stumps, missing);
    OFFSET(rc_stumps, at_zero);
    OFFSET(rc_stumps, base);
    OFFSET(rc_stumps, n_features);
    SIZE(rc_trees);
    OFFSET(rc_trees, offsets);
    OFFSET(rc_trees, features);
    OFFSET(rc_trees, children);
    OFFSET(rc_trees, missing);
    OFFSET(rc_trees, thresholds);
    OFFSET(rc_trees, values);
    OFFSET(rc_trees, n_trees);
    OFFSET(rc_trees, n_features);
    OFFSET(rc_trees, zero_missing);
    OFFSET(rc_trees, sets);
    OFFSET(rc_trees, words);
#ifdef LAYOUT_CAPI
    CONSTANT(RC_TIE_CRAMMER);
    CONSTANT(RC_TIE_STRICT);
    CONSTANT(RC_UPDATE_PERCEPTRON);
    CONSTANT(RC_UPDATE_PA);
    CONSTANT(RC_UPDATE_PA1);
    CONSTANT(RC_UPDATE_PA2);
    SIZE(rc_counts);
    OFFSET(rc_counts, t);
    OFFSET(rc_counts, rank_loss);
    OFFSET(rc_counts, mistakes);
    SIZE(rc_forgetting);
    OFFSET(rc_forgetting, gain);
    OFFSET(rc_forgetting, past);
    SIZE(rc_prank_state);
    OFFSET(rc_prank_state, weights);
    OFFSET(rc_prank_state, steps);
    OFFSET(rc_prank_state, thresholds);
    OFFSET(rc_prank_state, weight_sums);
    OFFSET(rc_prank_state, step_sums);
    OFFSET(rc_prank_state, real_step_sums);
    OFFSET(rc_prank_state, scale);
    OFFSET(rc_prank_state, forgetting);
    OFFSET(rc_prank_state, n_features);
    OFFSET(rc_prank_state, n_ranks);
    OFFSET(rc_prank_state, tie);
    OFFSET(rc_prank_state, seen);
    SIZE(rc_cusum_state);
    OFFSET(rc_cusum_state, weights);
    OFFSET(rc_cusum_state, thresholds);
    OFFSET(rc_cusum_state, weight_sums);
    OFFSET(rc_cusum_state, threshold_sums);
    OFFSET(rc_cusum_state, scores);
    OFFSET(rc_cusum_state, C);
    OFFSET(rc_cusum_state, delta);
    OFFSET(rc_cusum_state, margin);
    OFFSET(rc_cusum_state, scale);
    OFFSET(rc_cusum_state, forgetting);
    OFFSET(rc_cusum_state, n_features);
    OFFSET(rc_cusum_state, n_ranks);
    OFFSET(rc_cusum_state, tie);
    OFFSET(rc_cusum_state, update);
    OFFSET(rc_cusum_state, zero_one);
    OFFSET(rc_cusum_state, seen);
    SIZE(rc_lms_state);
    OFFSET(rc_lms_state, weights);
    OFFSET(rc_lms_state, intercept);
    OFFSET(rc_lms_state, weight_sums);
    OFFSET(rc_lms_state, intercept_sums);
    OFFSET(rc_lms_state, eta);
    OFFSET(rc_lms_state, scale);
    OFFSET(rc_lms_state, forgetting);
    OFFSET(rc_lms_state, n_features);
    OFFSET(rc_lms_state, n_ranks);
    OFFSET(rc_lms_state, normalized);
    OFFSET(rc_lms_state, seen);
    SIZE(rc_mcp_state);
    OFFSET(rc_mcp_state, weights);
    OFFSET(rc_mcp_state, intercepts);
    OFFSET(rc_mcp_state, weight_sums);
    OFFSET(rc_mcp_state, intercept_sums);
    OFFSET(rc_mcp_state, scores);
    OFFSET(rc_mcp_state, scale);
    OFFSET(rc_mcp_state, forgetting);
    OFFSET(rc_mcp_state, n_features);
    OFFSET(rc_mcp_state, n_ranks);
    OFFSET(rc_mcp_state, uniform);
    OFFSET(rc_mcp_state, seen);
    SIZE(rc_pair_state);
    OFFSET(rc_pair_state, weights);
    OFFSET(rc_pair_state, weight_sums);
    OFFSET(rc_pair_state, members);
    OFFSET(rc_pair_state, successes);
    OFFSET(rc_pair_state, born);
    OFFSET(rc_pair_state, capacity);
    OFFSET(rc_pair_state, n_features);
    OFFSET(rc_pair_state, margin);
    OFFSET(rc_pair_state, forgetting);
    OFFSET(rc_pair_state, kept);
    OFFSET(rc_pair_state, streak);
    OFFSET(rc_pair_state, total);
    OFFSET(rc_pair_state, unit);
    OFFSET(rc_pair_state, run);
    OFFSET(rc_pair_state, right);
    OFFSET(rc_pair_state, n_pairs);
    OFFSET(rc_pair_state, n_mistakes);
    /* The size of this one grows; what it has stays where it is. */
    OFFSET(rc_capi, version);
    OFFSET(rc_capi, size);
    OFFSET(rc_capi, prank_update);
    OFFSET(rc_capi, prank_average);
    OFFSET(rc_capi, cusum_update);
    OFFSET(rc_capi, lms_update);
    OFFSET(rc_capi, mcp_update);
    OFFSET(rc_capi, pair_update);
    OFFSET(rc_capi, pair_average);
    OFFSET(rc_capi, pair_committee);
    OFFSET(rc_capi, prank_margin_update);
#endif
    return 0;
}
