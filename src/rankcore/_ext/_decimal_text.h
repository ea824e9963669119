/* Numbers as decimal text, for writers of large files. Private.
 *
 * Doubles have the fewest digits that read back as the same number, and of those the nearest
 * (R. Giulietti, "The Schubfach way to render doubles", 2020): the text of Python's repr. Floats
 * have nine digits, correctly rounded: the text of "%.9g".
 */
#ifndef RANKCORE_DECIMAL_TEXT_H
#define RANKCORE_DECIMAL_TEXT_H

#include <stdint.h>
#include <string.h>

#include "_decimal.h"

/* Powers of ten: entry k - RC_TEN_MIN holds the leading 128 bits of 10^k, rounded up. */
#define RC_TEN_MIN (-292)
#define RC_TEN_MAX 324
#define RC_TEN_WORDS 1234 /* two each, high word first */

enum {
    RC_NUMBER_BYTES = 24, /* the longest text of a double, "-1.7976931348623157e+308" */
    RC_DOUBLE_FIXED = 16, /* digits before the point, up to which there is no exponent */
    RC_FLOAT_FIXED = 9
};

/* 217706 / 2^16 is log2(10) and 1262611 / 2^22 log10(2), closely enough for the floor. */
static inline int rc_log2_of_ten_(int k) { return (k * 217706) >> 16; }
static inline int rc_log10_of_two_(int e) { return (e * 1262611) >> 22; }

static inline const uint64_t *rc_ten_(const uint64_t *tens, int k)
{
    return tens + 2 * (k - RC_TEN_MIN);
}

/* Returns the leading 64 bits of a product with a power of ten; the last is set if any below is. */
static inline uint64_t rc_to_odd_(const uint64_t *ten, uint64_t x)
{
    uint64_t low, middle, high;
    const uint64_t carry = rc_product_(ten[1], x, &low);
    high = rc_product_(ten[0], x, &middle);
    middle += carry;
    high += middle < carry;
    return high | (middle > 1);
}

/* Returns the shortest digits of fraction * 2^binary, and writes their power of ten. */
static inline uint64_t rc_shortest_(uint64_t fraction, int binary, int closer_below,
                                    const uint64_t *tens, int *exponent)
{
    const int odd = (int)(fraction & 1);
    const int k = (binary * 1262611 - (closer_below ? 524031 : 0)) >> 22;
    const int shift = binary + rc_log2_of_ten_(-k) + 1;
    const uint64_t *ten = rc_ten_(tens, -k);
    /* Four times the number, and the bounds of what reads back as the number. */
    const uint64_t low =
        rc_to_odd_(ten, (4 * fraction - 2 + (uint64_t)closer_below) << shift) + (uint64_t)odd;
    const uint64_t value = rc_to_odd_(ten, (4 * fraction) << shift);
    const uint64_t high = rc_to_odd_(ten, (4 * fraction + 2) << shift) - (uint64_t)odd;
    const uint64_t digits = value / 4;
    int below, above;
    *exponent = k;
    if (digits >= 10) {
        const uint64_t fewer = digits / 10;
        below = low <= 40 * fewer;
        above = 40 * fewer + 40 <= high;
        if (below != above) {
            *exponent = k + 1;
            return fewer + (uint64_t)above;
        }
    }
    below = low <= 4 * digits;
    above = 4 * digits + 4 <= high;
    if (below != above)
        return digits + (uint64_t)above;
    return digits + (value > 4 * digits + 2 || (value == 4 * digits + 2 && (digits & 1)));
}

/* Returns nine digits of fraction * 2^binary, where the fraction has 24 bits or fewer and is not 0.
 */
static inline uint64_t rc_nine_(uint64_t fraction, int binary, const uint64_t *tens, int *exponent)
{
    const int zeros = rc_high_zeros_(fraction);
    int k = 8 - rc_log10_of_two_(binary + 63 - zeros), places;
    uint64_t low, middle, high, carry, half, digits;
    for (;; k--) {
        const uint64_t *ten = rc_ten_(tens, k);
        carry = rc_product_(ten[1], fraction << zeros, &low);
        high = rc_product_(ten[0], fraction << zeros, &middle);
        middle += carry;
        high += middle < carry;
        /* Bits of `high` behind the point. */
        places = zeros - binary - rc_log2_of_ten_(k) - 1;
        digits = high >> places;
        if (digits < 1000000000)
            break;
    }
    *exponent = -k;
    half = (uint64_t)1 << (places - 1);
    high &= 2 * half - 1;
    /* Up to 10^55 powers are exact, and so is the product. A product with a rounded one is too
     * large by less than 2 in `middle`; other numbers lie further than 2^16 from half way. */
    if (high == half && (k < 0 ? middle < 65536 : (middle | low) == 0))
        digits += digits & 1;
    else
        digits += high >= half;
    return digits;
}

/* Two digits each of 0 .. 99. */
static const char rc_pairs_[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";

/* Writes the n digits of a number to `to`. */
static inline void rc_put_digits_(char *to, uint64_t number, int n)
{
    uint32_t rest, four;
    /* Eight at a time, with divisions that do not wait for each other. */
    while (n > 8) {
        n -= 8;
        rest = (uint32_t)(number % 100000000);
        number /= 100000000;
        four = rest / 10000;
        rest %= 10000;
        memcpy(to + n, rc_pairs_ + 2 * (four / 100), 2);
        memcpy(to + n + 2, rc_pairs_ + 2 * (four % 100), 2);
        memcpy(to + n + 4, rc_pairs_ + 2 * (rest / 100), 2);
        memcpy(to + n + 6, rc_pairs_ + 2 * (rest % 100), 2);
    }
    rest = (uint32_t)number;
    while (n >= 2) {
        n -= 2;
        memcpy(to + n, rc_pairs_ + 2 * (rest % 100), 2);
        rest /= 100;
    }
    if (n)
        *to = (char)('0' + rest);
}

static inline int rc_n_digits_(uint64_t number)
{
    static const uint64_t tens[] = {0,
                                    10,
                                    100,
                                    1000,
                                    10000,
                                    100000,
                                    1000000,
                                    10000000,
                                    100000000,
                                    1000000000,
                                    10000000000,
                                    100000000000,
                                    1000000000000,
                                    10000000000000,
                                    100000000000000,
                                    1000000000000000,
                                    10000000000000000,
                                    100000000000000000,
                                    1000000000000000000,
                                    10000000000000000000u};
    /* 1233 / 2^12 is log10(2) closely enough for as many bits. */
    const int n = ((64 - rc_high_zeros_(number | 1)) * 1233) >> 12;
    return n + (number >= tens[n]);
}

/* Writes a non-negative whole number; returns the end of its text. */
static inline char *rc_put_whole(char *to, uint64_t number)
{
    const int n = rc_n_digits_(number);
    rc_put_digits_(to, number, n);
    return to + n;
}

static inline char *rc_put_exponent_(char *to, int exponent)
{
    const int size = exponent < 0 ? -exponent : exponent;
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    if (size < 10)
        *to++ = '0';
    return rc_put_whole(to, (uint64_t)size);
}

/* Writes digits * 10^exponent, with an exponent below 10^-4 and from 10^most on. */
static inline char *rc_put_decimal_(char *to, uint64_t digits, int exponent, int most)
{
    int n, point;
    while (digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    n = rc_n_digits_(digits);
    point = n + exponent;
    if (point <= -4 || point > most) {
        rc_put_digits_(to + 1, digits, n);
        to[0] = to[1];
        to[1] = '.';
        return rc_put_exponent_(to + (n > 1 ? n + 1 : 1), point - 1);
    }
    if (point <= 0) {
        memcpy(to, "0.000", 5);
        rc_put_digits_(to + 2 - point, digits, n);
        return to + 2 - point + n;
    }
    if (point >= n) {
        rc_put_digits_(to, digits, n);
        memset(to + n, '0', (size_t)exponent);
        return to + point;
    }
    rc_put_digits_(to + 1, digits, n);
    memmove(to, to + 1, (size_t)point);
    to[point] = '.';
    return to + n + 1;
}

/* Writes a finite double as repr does, without a ".0" at the end; returns the end of its text. */
static inline char *rc_put_double(char *to, double value, const uint64_t *tens)
{
    uint64_t bits, fraction;
    int binary, exponent;
    memcpy(&bits, &value, sizeof bits);
    if (bits >> 63)
        *to++ = '-';
    fraction = bits & 0x000fffffffffffffu;
    binary = (int)(bits >> 52 & 2047);
    if (value > -9007199254740992.0 && value < 9007199254740992.0 &&
        (double)(int64_t)value == value)
        return rc_put_whole(to, (uint64_t)(value < 0 ? -value : value));
    if (binary)
        fraction |= (uint64_t)1 << 52;
    bits = rc_shortest_(fraction, (binary ? binary : 1) - 1075,
                        fraction == (uint64_t)1 << 52 && binary > 1, tens, &exponent);
    return rc_put_decimal_(to, bits, exponent, RC_DOUBLE_FIXED);
}

/* Writes a finite float as "%.9g" does; returns the end of its text. */
static inline char *rc_put_float(char *to, float value, const uint64_t *tens)
{
    uint64_t digits;
    uint32_t bits;
    int binary, exponent;
    memcpy(&bits, &value, sizeof bits);
    if (bits >> 31)
        *to++ = '-';
    binary = (int)(bits >> 23 & 255);
    bits &= 0x007fffffu;
    if (!binary && !bits) {
        *to = '0';
        return to + 1;
    }
    if (binary)
        bits |= 0x00800000u;
    digits = rc_nine_(bits, (binary ? binary : 1) - 150, tens, &exponent);
    return rc_put_decimal_(to, digits, exponent, RC_FLOAT_FIXED);
}

#endif /* RANKCORE_DECIMAL_TEXT_H */
