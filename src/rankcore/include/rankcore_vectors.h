/* Shared by the vector loops: clones for wider registers, lanes, and prefetching. No public names.
 *
 * Inner loops that benefit from wider registers are compiled for the baseline and for these, and
 * chosen when the module is loaded; all give the same numbers. Only if the loader can choose
 * (glibc), and not under the sanitizers, which start too late. */
#ifndef RANKCORE_VECTORS_H
#define RANKCORE_VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12
#define RC_CLONES_ __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define RC_CLONES_ __attribute__((target_clones("avx2", "default")))
#endif
#else
#define RC_CLONES_
#endif

#if defined(__GNUC__)
#define RC_INLINE_ static inline __attribute__((always_inline))
#else
#define RC_INLINE_ static inline
#endif

/* Vectors of numbers, split by the compiler into the available registers. GCC and Clang have
 * such types; they vectorise only half of these loops automatically. Elsewhere they are arrays. */
#if defined(__GNUC__)
/* Clang for AltiVec compares vectors to one truth value, not to a vector. NEON of 32-bit ARM
 * treats subnormal floats as zero, which would change the paths of rows in trees. */
#if !(defined(__clang__) && defined(__ALTIVEC__)) && !defined(__arm__)
#define RC_COMPARES_VECTORS_ 1
#endif
typedef double rc_eight __attribute__((vector_size(64)));
typedef double rc_four __attribute__((vector_size(32)));
typedef float rc_eight_f32 __attribute__((vector_size(32)));
typedef float rc_four_f32 __attribute__((vector_size(16)));
typedef int64_t rc_four_flags __attribute__((vector_size(32)));
typedef int32_t rc_four_i32 __attribute__((vector_size(16)));
typedef int32_t rc_eight_i32 __attribute__((vector_size(32)));
#define RC_LOAD_(to, from) memcpy(&(to), from, sizeof(to))
#define RC_STORE_(to, from) memcpy(to, &(from), sizeof(from))
#define RC_FETCH_(address) __builtin_prefetch((const void *)(address))
#define RC_FETCH_SECOND_(address) __builtin_prefetch((const void *)(address), 0, 2)
#else
#define RC_FETCH_(address) ((void)(address))
#define RC_FETCH_SECOND_(address) ((void)(address))
#endif

#endif /* RANKCORE_VECTORS_H */
