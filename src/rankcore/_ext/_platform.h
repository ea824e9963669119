/* Assumptions of the kernels about machine and compiler, beyond C99 and the widths of <stdint.h>.
 * Any byte order is supported, if integers and floats share it. Checked when rows.pyx is imported.
 */
#ifndef RANKCORE_PLATFORM_H
#define RANKCORE_PLATFORM_H

#include <stdint.h>
#include <string.h>

/* Returns the violated assumption, as a noun phrase, or NULL. */
static inline const char *rc_platform_fault(void)
{
    /* Volatile: computed when the module is loaded, by the instructions that kernels use. */
    const volatile double one = 1.0, tiny = 1.0 / 9007199254740992.0, bit = 1.0 / 1073741824.0;
    const volatile int32_t minus_five = -5;
    const double x = one;
    const float y = (float)x;
    uint64_t wide;
    uint32_t narrow;
    if (sizeof(int) != 4 || sizeof x != 8 || sizeof y != 4)
        return "int and float of 4 bytes, and double of 8";
    memcpy(&wide, &x, sizeof wide);
    memcpy(&narrow, &y, sizeof narrow);
    if (wide != 0x3FF0000000000000u || narrow != 0x3F800000u)
        return "IEEE 754 numbers in the byte order of integers";
    if (minus_five >> 1 != -3)
        return "right shifts of integers that keep the sign";
    if (one + tiny - one != 0.0)
        return "sums of doubles that are rounded to double";
    if ((one + bit) * (one - bit) - one != 0.0)
        return "products that are rounded before they are added (compile with -ffp-contract=off)";
    return NULL;
}

#endif /* RANKCORE_PLATFORM_H */
