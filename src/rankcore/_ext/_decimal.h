/* Conversion of decimal text to the nearest double, for readers of large files. Private.
 *
 * Text ends in a newline, where every scan stops without a check for the end. Digits are read
 * eight at a time, since a branch on their number would be mispredicted.
 *
 * The value is exact by one rounding where 53 bits and 22 powers of ten suffice (W. D. Clinger,
 * "How to read floating point numbers accurately", PLDI 1990), otherwise by a product with a power
 * of five of 128 bits (D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and
 * Experience 51(8), 2021). The few texts that neither decides are left to the caller.
 */
#ifndef RANKCORE_DECIMAL_H
#define RANKCORE_DECIMAL_H

#include <float.h>
#include <stdint.h>
#include <string.h>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

/* Kinds of text. */
enum {
    RC_DECIMAL_FINITE,    /* a number, and its nearest double is finite */
    RC_DECIMAL_INFINITE,  /* by name, or beyond the maximum double */
    RC_DECIMAL_NAN,       /* by name */
    RC_DECIMAL_UNDECIDED, /* a number whose value the caller must find */
    RC_DECIMAL_NONE       /* not a number */
};

/* Whether one operation on doubles rounds once (it does not on the x87). */
#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 1)
#define RC_ONE_ROUNDING_ 1
#else
#define RC_ONE_ROUNDING_ 0
#endif

/* Powers of five: entry q - RC_POWER_MIN holds the leading 128 bits of 5^q, high word first. */
#define RC_POWER_MIN (-342)
#define RC_POWER_MAX 308
#define RC_POWER_WORDS 1302 /* two each */

static inline int rc_is_digit_(unsigned char c) { return (unsigned char)(c - '0') < 10; }

/* Loads eight bytes, the first lowest: one instruction where the byte order allows. */
static inline uint64_t rc_load_(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

/* Counts the zero bits below the lowest set one; x is not 0. */
static inline int rc_low_zeros_(uint64_t x)
{
#if defined(__GNUC__)
    return __builtin_ctzll(x);
#elif defined(_MSC_VER) && defined(_WIN64)
    unsigned long i;
    _BitScanForward64(&i, x);
    return (int)i;
#else
    int n = 0;
    for (; !(x & 1); x >>= 1)
        n++;
    return n;
#endif
}

/* Counts the zero bits above the highest set one; x is not 0. */
static inline int rc_high_zeros_(uint64_t x)
{
#if defined(__GNUC__)
    return __builtin_clzll(x);
#elif defined(_MSC_VER) && defined(_WIN64)
    unsigned long i;
    _BitScanReverse64(&i, x);
    return 63 - (int)i;
#else
    int n = 0;
    for (; !(x >> 63); x <<= 1)
        n++;
    return n;
#endif
}

/* Returns the high word of a 128-bit product, and writes the low one to *low. */
static inline uint64_t rc_product_(uint64_t a, uint64_t b, uint64_t *low)
{
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 rc_uint128_;
    const rc_uint128_ product = (rc_uint128_)a * b;
    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
#elif defined(_MSC_VER) && defined(_M_X64)
    uint64_t high;
    *low = _umul128(a, b, &high);
    return high;
#else
    const uint64_t half = 0xffffffffu;
    const uint64_t ll = (a & half) * (b & half), hl = (a >> 32) * (b & half);
    const uint64_t lh = (a & half) * (b >> 32), hh = (a >> 32) * (b >> 32);
    const uint64_t middle = (ll >> 32) + (hl & half) + lh;
    *low = middle << 32 | (ll & half);
    return hh + (hl >> 32) + (middle >> 32);
#endif
}

/* Returns the number that the leading digits of eight bytes write, and counts these digits. */
static inline uint32_t rc_eight_(uint64_t bytes, int *n_digits)
{
    uint64_t x = bytes ^ 0x3030303030303030u; /* a digit's byte becomes 0 .. 9 */
    const uint64_t other =
        (((x & 0x7f7f7f7f7f7f7f7fu) + 0x7676767676767676u) | x) & 0x8080808080808080u;
    *n_digits = 8;
    if (other) {
        /* Move the digits up to where the last ones would be; zeros lead them. */
        *n_digits = rc_low_zeros_(other) >> 3;
        x = x << 8 << (56 - 8 * *n_digits);
    }
    x = x * 10 + (x >> 8); /* pairs, in every other byte */
    return (uint32_t)(((x & 0x000000ff000000ffu) * 0x000f424000000064u +
                       (x >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
                      32);
}

/* Appends the digits at *at to `number`, modulo 2^64. */
static inline uint64_t rc_digits_(const unsigned char **at, const unsigned char *stop,
                                  uint64_t number)
{
    static const uint64_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    int n;
    while (stop - *at >= 8) {
        const uint32_t part = rc_eight_(rc_load_(*at), &n);
        number = number * power[n] + part;
        *at += n;
        if (n < 8)
            return number;
    }
    while (rc_is_digit_(**at))
        number = number * 10 + (uint64_t)(*(*at)++ - '0');
    return number;
}

/* The same digit by digit: faster for few digits, whose number is predictable. */
static inline uint64_t rc_few_digits_(const unsigned char **at, uint64_t number)
{
    const unsigned char *p = *at;
    for (; rc_is_digit_(*p); p++)
        number = number * 10 + (uint64_t)(*p - '0');
    *at = p;
    return number;
}

/* Reads the whole number at *at and moves past it; -1 if it has 20 digits or does not fit. */
static inline int64_t rc_whole(const unsigned char **at)
{
    const unsigned char *start = *at;
    const uint64_t number = rc_few_digits_(at, 0);
    return *at - start > 19 || number > INT64_MAX ? -1 : (int64_t)number;
}

/* Writes the double nearest to significand * 10^exponent; returns its kind. */
static inline int rc_nearest_(uint64_t significand, int64_t exponent, const uint64_t *powers,
                              double *value)
{
    const uint64_t *power;
    uint64_t high, low, bits;
    int shift, upper;
    int64_t binary;
    *value = 0.0;
    if (significand == 0 || exponent < RC_POWER_MIN)
        return RC_DECIMAL_FINITE;
    if (exponent > RC_POWER_MAX)
        return RC_DECIMAL_INFINITE;
    power = powers + 2 * (exponent - RC_POWER_MIN);
    shift = rc_high_zeros_(significand);
    significand <<= shift;
    high = rc_product_(significand, power[0], &low);
    /* Nine bits lie below the 55 that matter: the rest can carry into these only through ones. */
    if ((high & 0x1ff) == 0x1ff) {
        uint64_t unused;
        const uint64_t carry = rc_product_(significand, power[1], &unused);
        low += carry;
        high += low < carry;
        if (low == UINT64_MAX && (exponent < -27 || exponent > 55))
            return RC_DECIMAL_UNDECIDED;
    }
    upper = (int)(high >> 63);
    bits = high >> (upper + 9);
    /* 217706 / 2^16 is log2(10) closely enough in this range. */
    binary = (217706 * exponent >> 16) + 1086 + upper - shift;
    if (binary <= 0)
        return RC_DECIMAL_UNDECIDED; /* zero or subnormal: too rare for rules of its own */
    /* Exactly half way between two doubles: round to even. */
    if (low <= 1 && exponent >= -4 && exponent <= 23 && (bits & 3) == 1 &&
        bits << (upper + 9) == high)
        bits--;
    bits = (bits + (bits & 1)) >> 1;
    if (bits >> 53) {
        bits >>= 1;
        binary++;
    }
    if (binary >= 2047)
        return RC_DECIMAL_INFINITE;
    bits = (bits & 0x000fffffffffffffu) | (uint64_t)binary << 52;
    memcpy(value, &bits, sizeof bits);
    return RC_DECIMAL_FINITE;
}

/* Reads a number of more than 19 digits, from `digits` on, perhaps with a point among them. */
static inline int rc_long_decimal_(const unsigned char *digits, int64_t exponent,
                                   const uint64_t *powers, double *value)
{
    uint64_t significand = 0;
    int n = 0, after_point = 0, more = 0, kind;
    double above;
    for (;; digits++) {
        if (*digits == '.') {
            after_point = 1;
            continue;
        }
        if (!rc_is_digit_(*digits))
            break;
        if (n < 19) {
            significand = significand * 10 + (uint64_t)(*digits - '0');
            n += significand != 0;
            exponent -= after_point;
        } else {
            more |= *digits != '0';
            exponent += !after_point;
        }
    }
    kind = rc_nearest_(significand, exponent, powers, value);
    if (!more || kind == RC_DECIMAL_UNDECIDED)
        return kind;
    /* The number is between this one and the next: both must round to the same double. */
    if (rc_nearest_(significand + 1, exponent, powers, &above) != kind || above != *value)
        return RC_DECIMAL_UNDECIDED;
    return kind;
}

static inline int rc_matches_(const unsigned char **at, const char *name)
{
    const unsigned char *p = *at;
    for (; *name; name++, p++)
        if ((*p | 32) != (unsigned char)*name)
            return 0;
    *at = p;
    return 1;
}

static inline double rc_infinity_(void)
{
    const uint64_t bits = UINT64_C(0x7ff) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads nan, inf or infinity, at p after its sign. */
static inline int rc_named_(const unsigned char **at, const unsigned char *p, int negative,
                            double *value)
{
    const uint64_t nan = UINT64_C(0x7ff8) << 48;
    int kind = RC_DECIMAL_INFINITE;
    *value = rc_infinity_();
    if (rc_matches_(&p, "nan")) {
        memcpy(value, &nan, sizeof nan);
        kind = RC_DECIMAL_NAN;
    } else if (!rc_matches_(&p, "infinity") && !rc_matches_(&p, "inf")) {
        return RC_DECIMAL_NONE;
    }
    *value = negative ? -*value : *value;
    *at = p;
    return kind;
}

/* Parses the number at *at and moves past it. The caller checks the following text.
 *
 * The grammar is that of Python's float(), without spaces and underscores: a sign, digits with or
 * without a point, an exponent; or nan, inf, infinity in any case. `stop` is past the newline that
 * ends the text.
 */
static inline int rc_decimal(const unsigned char **at, const unsigned char *stop,
                             const uint64_t *powers, double *value)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const unsigned char *p = *at, *digits;
    const int negative = *p == '-';
    uint64_t significand;
    int64_t shift = 0, n_fraction = 0, n_digits;
    int kind = RC_DECIMAL_FINITE;
    p += negative | (*p == '+');
    digits = p;
    significand = rc_few_digits_(&p, 0);
    n_digits = p - digits;
    if (*p == '.') {
        const unsigned char *fraction = ++p;
        significand = rc_digits_(&p, stop, significand);
        n_fraction = p - fraction;
        n_digits += n_fraction;
    }
    if (n_digits == 0)
        return p == digits ? rc_named_(at, p, negative, value) : RC_DECIMAL_NONE;
    if ((*p | 32) == 'e') {
        const unsigned char *start;
        const int down = *++p == '-';
        p += down | (*p == '+');
        for (start = p; rc_is_digit_(*p); p++)
            if (shift < 1000000000000) /* beyond any double, however long its text */
                shift = shift * 10 + (*p - '0');
        if (p == start)
            return RC_DECIMAL_NONE;
        shift = down ? -shift : shift;
    }
    *at = p;
    if (n_digits > 19) {
        kind = rc_long_decimal_(digits, shift, powers, value);
    } else {
        const int64_t exponent = shift - n_fraction;
        if (RC_ONE_ROUNDING_ && significand <= (UINT64_C(1) << 53) && -22 <= exponent &&
            exponent <= 22)
            *value = exponent < 0 ? (double)significand / power[-exponent]
                                  : (double)significand * power[exponent];
        else
            kind = rc_nearest_(significand, exponent, powers, value);
    }
    if (kind == RC_DECIMAL_INFINITE)
        *value = rc_infinity_();
    *value = negative ? -*value : *value;
    return kind;
}

#endif /* RANKCORE_DECIMAL_H */
