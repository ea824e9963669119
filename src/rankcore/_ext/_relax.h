/* A pause in a loop that watches memory, which leaves the core to its other thread. */
#ifndef RANKCORE_RELAX_H
#define RANKCORE_RELAX_H

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <intrin.h>
#define rc_relax() _mm_pause()
#elif defined(__x86_64__) || defined(__i386__)
#define rc_relax() __builtin_ia32_pause()
#elif defined(__aarch64__) && !defined(_MSC_VER)
#define rc_relax() __asm__ __volatile__("yield")
#else
#define rc_relax() ((void)0)
#endif

#endif
