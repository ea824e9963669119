/* Inner loops that pay for wider registers are compiled for the baseline and for these, and chosen
 * when the module is loaded; which one runs changes no number. Only where the loader can choose
 * (glibc), and not under the sanitizers, which start too late. Private. */
#ifndef RANKCORE_CLONES_H
#define RANKCORE_CLONES_H

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

#endif /* RANKCORE_CLONES_H */
