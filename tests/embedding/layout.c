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
#ifdef LAYOUT_CAPI
    CONSTANT(RC_TIE_CRAMMER);
    CONSTANT(RC_TIE_STRICT);
    SIZE(rc_prank_state);
    OFFSET(rc_prank_state, weights);
    OFFSET(rc_prank_state, steps);
    OFFSET(rc_prank_state, thresholds);
    OFFSET(rc_prank_state, weight_sums);
    OFFSET(rc_prank_state, step_sums);
    OFFSET(rc_prank_state, scale);
    OFFSET(rc_prank_state, t);
    OFFSET(rc_prank_state, rank_loss);
    OFFSET(rc_prank_state, mistakes);
    OFFSET(rc_prank_state, n_features);
    OFFSET(rc_prank_state, n_ranks);
    OFFSET(rc_prank_state, tie);
    /* The size of this one grows; what it has stays where it is. */
    OFFSET(rc_capi, version);
    OFFSET(rc_capi, size);
    OFFSET(rc_capi, prank_update);
    OFFSET(rc_capi, prank_average);
#endif
    return 0;
}
