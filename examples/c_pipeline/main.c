/* Ranks rows with a PRank that train.py wrote. Plain C99 (and C++11) with rankcore.h: no Python.
 *
 *     rank [-s] model.txt < rows.svm
 *
 * Reads svmlight rows, "[label] [qid:n] column:value ... # comment", columns from 1 and ascending;
 * writes the predicted label of each, with -s also its score, exact to the bit.
 * Exit status: 0; 1 after a bad row; 2 after a bad command line or model.
 *
 * Nothing calls setlocale, so numbers are read and written with a point whatever the user's locale.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rankcore.h"

enum { BAD_ROW = 1, BAD_MODEL = 2 };

/* A text file, and the line of it that is being read. */
struct reader {
    FILE *file;
    const char *name;
    int fault; /* exit status if the file is bad */
    long line_number;
    char *line;
    size_t size; /* bytes allocated for it */
};

/* A model and what it borrows. */
struct model {
    rc_prank prank;
    double *weights;
    double *thresholds;
    char **labels; /* n_ranks words inside label_line */
    char *label_line;
};

static void fail(const struct reader *in, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%ld: ", in->name, in->line_number);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(in->fault);
}

static void *allocate(const struct reader *in, int64_t n, size_t size)
{
    void *memory = calloc((size_t)n, size);
    if (!memory)
        fail(in, "out of memory");
    return memory;
}

/* Reads the next line, of any length; 0 at the end of the file. */
static int read_line(struct reader *in)
{
    size_t length = 0;
    int c;
    in->line_number++;
    do {
        c = getc(in->file);
        if (c == '\0')
            fail(in, "not a text file");
        if (length == in->size) {
            in->size = in->size ? 2 * in->size : 256;
            in->line = (char *)realloc(in->line, in->size);
            if (!in->line)
                fail(in, "out of memory");
        }
        in->line[length++] = (char)(c == EOF || c == '\n' ? '\0' : c);
    } while (c != EOF && c != '\n');
    if (ferror(in->file))
        fail(in, "%s", strerror(errno));
    return c == '\n' || length > 1;
}

/* Cuts the next word off *text; NULL if there is none. */
static char *next_word(char **text)
{
    static const char space[] = " \t\r\v\f";
    char *word = *text + strspn(*text, space);
    *text = word + strcspn(word, space);
    if (**text)
        *(*text)++ = '\0';
    return *word ? word : NULL;
}

static double number(const struct reader *in, const char *word)
{
    char *end;
    const double value = strtod(word, &end);
    if (end == word || *end || !isfinite(value))
        fail(in, "expected a finite number, found '%s'", word);
    return value;
}

static int32_t integer(const struct reader *in, const char *what, const char *word, int32_t low,
                       int32_t high)
{
    char *end;
    const long long value = strtoll(word, &end, 10);
    if (end == word || *end || value < low || value > high)
        fail(in, "%s must be a whole number from %" PRId32 " to %" PRId32 ", found '%s'", what, low,
             high, word);
    return (int32_t)value;
}

/* Reads a line "name word ..." of a model; what follows the name. */
static char *read_field(struct reader *in, const char *name)
{
    char *rest = in->line;
    const char *word = NULL;
    if (read_line(in)) {
        rest = in->line;
        word = next_word(&rest);
    }
    if (!word || strcmp(word, name) != 0)
        fail(in, "expected '%s', found '%s'", name, word ? word : "");
    return rest;
}

/* The next word of a field that has more. */
static char *need_word(const struct reader *in, char **rest)
{
    char *word = next_word(rest);
    if (!word)
        fail(in, "the line is too short");
    return word;
}

static void end_field(const struct reader *in, char *rest)
{
    const char *word = next_word(&rest);
    if (word)
        fail(in, "nothing may follow here, found '%s'", word);
}

static struct model read_model(struct reader *in)
{
    struct model m;
    char *rest;
    int32_t n_ranks, n_features, i;

    rest = read_field(in, "rankcore-prank");
    integer(in, "the format version", need_word(in, &rest), 1, 1);
    end_field(in, rest);

    rest = read_field(in, "ranks");
    n_ranks = integer(in, "ranks", need_word(in, &rest), 2, INT32_MAX);
    end_field(in, rest);

    rest = read_field(in, "labels");
    m.labels = (char **)allocate(in, n_ranks, sizeof *m.labels);
    for (i = 0; i < n_ranks; i++)
        m.labels[i] = need_word(in, &rest);
    end_field(in, rest);
    m.label_line = in->line; /* the reader will allocate another */
    in->line = NULL;
    in->size = 0;

    rest = read_field(in, "thresholds");
    m.thresholds = (double *)allocate(in, n_ranks - 1, sizeof *m.thresholds);
    for (i = 0; i < n_ranks - 1; i++) {
        m.thresholds[i] = number(in, need_word(in, &rest));
        if (i > 0 && m.thresholds[i] < m.thresholds[i - 1])
            fail(in, "the thresholds must ascend");
    }
    end_field(in, rest);

    rest = read_field(in, "features");
    n_features = integer(in, "features", need_word(in, &rest), 1, INT32_MAX);
    end_field(in, rest);

    m.weights = (double *)allocate(in, n_features, sizeof *m.weights);
    for (i = 0; i < n_features; i++) {
        if (!read_line(in))
            fail(in, "expected %" PRId32 " weights, found %" PRId32, n_features, i);
        rest = in->line;
        m.weights[i] = number(in, need_word(in, &rest));
        end_field(in, rest);
    }
    if (read_line(in))
        fail(in, "expected %" PRId32 " weights, found more", n_features);

    m.prank.weights = m.weights;
    m.prank.thresholds = m.thresholds;
    m.prank.n_features = n_features;
    m.prank.n_ranks = n_ranks;
    return m;
}

/* Reads the next row into arrays of n_features entries; how many it has, -1 after the last row. */
static int64_t read_row(struct reader *in, int32_t n_features, int32_t *columns, double *values)
{
    int32_t n = 0, column;
    char *rest, *word;
    do {
        if (!read_line(in))
            return -1;
        in->line[strcspn(in->line, "#")] = '\0';
        rest = in->line;
        word = next_word(&rest);
    } while (!word);

    if (!strchr(word, ':')) /* the true label, of no use here */
        word = next_word(&rest);
    if (word && strncmp(word, "qid:", 4) == 0)
        word = next_word(&rest);

    for (; word; word = next_word(&rest)) {
        char *colon = strchr(word, ':');
        if (!colon)
            fail(in, "expected column:value, found '%s'", word);
        *colon = '\0';
        /* rankcore.h looks a column up without checking it: none beyond the model may pass here.
         * Those that ascend are at most n_features, so the arrays are long enough as well. */
        column = integer(in, "a column", word, 1, n_features) - 1;
        if (n > 0 && column <= columns[n - 1])
            fail(in, "the columns of a row must ascend, found %s after %" PRId32, word,
                 columns[n - 1] + 1);
        columns[n] = column;
        values[n] = number(in, colon + 1);
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    const int with_scores = argc > 1 && strcmp(argv[1], "-s") == 0;
    struct reader file = {NULL, NULL, BAD_MODEL, 0, NULL, 0};
    struct reader rows = {stdin, "standard input", BAD_ROW, 0, NULL, 0};
    struct model m;
    int32_t *columns;
    double *values;
    int64_t n;

    if (argc != 2 + with_scores) {
        fprintf(stderr, "usage: %s [-s] model.txt < rows.svm\n", argv[0]);
        return BAD_MODEL;
    }
    file.name = argv[1 + with_scores];
    file.file = fopen(file.name, "r");
    if (!file.file) {
        fprintf(stderr, "%s: %s\n", file.name, strerror(errno));
        return BAD_MODEL;
    }
    m = read_model(&file);
    fclose(file.file);

    columns = (int32_t *)allocate(&rows, m.prank.n_features, sizeof *columns);
    values = (double *)allocate(&rows, m.prank.n_features, sizeof *values);
    while ((n = read_row(&rows, (int32_t)m.prank.n_features, columns, values)) >= 0) {
        const rc_row x = rc_row_f64(values, columns, n);
        const double score = rc_prank_score(&m.prank, x);
        const char *label = m.labels[rc_rank(m.prank.thresholds, m.prank.n_ranks, score)];
        if (with_scores)
            printf("%s %.17g\n", label, score);
        else
            puts(label);
    }

    free(values);
    free(columns);
    free(rows.line);
    free(file.line);
    free(m.weights);
    free(m.thresholds);
    free(m.labels);
    free(m.label_line);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "standard output: %s\n", strerror(errno));
        return BAD_ROW;
    }
    return 0;
}
