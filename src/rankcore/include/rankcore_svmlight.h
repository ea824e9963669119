/* rankcore_svmlight.h - read rows of svmlight and LETOR text. C99 (and C++11), header only.
 *
 *     [label] [qid:query] column:value ... # comment
 *
 * Columns are numbered from 1 and ascend. Numbers are parsed by strtod: they are the nearest
 * doubles, as in Python, if the C library rounds correctly; its locale must have a decimal point.
 * NaN and infinity are errors. Nothing is allocated, and only the arguments are written.
 */
#ifndef RANKCORE_SVMLIGHT_H
#define RANKCORE_SVMLIGHT_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kind of a line. */
enum {
    RC_SVMLIGHT_ROW = 0,   /* a row */
    RC_SVMLIGHT_EMPTY = 1, /* only blanks and a comment */
    RC_SVMLIGHT_BAD = 2    /* neither: see rc_svmlight.error */
};

/* A row, and arrays for its values: n_features entries, provided by the caller. */
typedef struct rc_svmlight {
    int32_t *columns; /* counted from 0 */
    double *values;
    int64_t n_features;
    int64_t n;         /* values of the row */
    double label;      /* NaN if there is none */
    const char *query; /* text after "qid:", terminated by a zero byte; NULL if there is none */
    char error[128];
} rc_svmlight;

static inline int32_t rc_svmlight_bad_(rc_svmlight *row, const char *what, const char *word)
{
    snprintf(row->error, sizeof row->error, "%s; got '%.40s'", what, word);
    return RC_SVMLIGHT_BAD;
}

/* Splits off the next word of *text; NULL if there is none. */
static inline char *rc_svmlight_word_(char **text)
{
    static const char space[] = " \t\r\n\v\f";
    char *word = *text + strspn(*text, space);
    *text = word + strcspn(word, space);
    if (**text)
        *(*text)++ = '\0';
    return *word ? word : NULL;
}

/* Returns whether a word is a finite number, and writes it. */
static inline int32_t rc_svmlight_number_(const char *word, double *value)
{
    char *end;
    *value = strtod(word, &end);
    return end != word && !*end && isfinite(*value);
}

/* Parses a line, which ends in a zero byte and is split into words in place; writes row.
 * O(characters). */
static inline int32_t rc_svmlight_read(rc_svmlight *row, char *line)
{
    char *rest = line, *word;
    line[strcspn(line, "#")] = '\0';
    row->n = 0;
    row->label = NAN;
    row->query = NULL;
    row->error[0] = '\0';
    word = rc_svmlight_word_(&rest);
    if (!word)
        return RC_SVMLIGHT_EMPTY;
    if (!strchr(word, ':')) {
        if (!rc_svmlight_number_(word, &row->label))
            return rc_svmlight_bad_(row, "expected a label or column:value", word);
        word = rc_svmlight_word_(&rest);
    }
    if (word && strncmp(word, "qid:", 4) == 0) {
        row->query = word + 4;
        word = rc_svmlight_word_(&rest);
    }
    for (; word; word = rc_svmlight_word_(&rest)) {
        char *end, *colon = strchr(word, ':');
        long long column;
        if (!colon)
            return rc_svmlight_bad_(row, "expected column:value", word);
        *colon = '\0';
        column = strtoll(word, &end, 10);
        if (end == word || *end || column < 1 || column > row->n_features) {
            char what[64];
            snprintf(what, sizeof what, "a column must be a whole number from 1 to %lld",
                     (long long)row->n_features);
            return rc_svmlight_bad_(row, what, word);
        }
        /* There are at most n_features ascending columns, so the arrays are large enough. */
        if (row->n > 0 && column - 1 <= row->columns[row->n - 1])
            return rc_svmlight_bad_(row, "the columns of a row must ascend", word);
        if (!rc_svmlight_number_(colon + 1, &row->values[row->n]))
            return rc_svmlight_bad_(row, "expected a finite number", colon + 1);
        row->columns[row->n++] = (int32_t)(column - 1);
    }
    return RC_SVMLIGHT_ROW;
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_SVMLIGHT_H */
