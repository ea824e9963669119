/* Ranks rows with a model that Python saved. Plain C99 (and C++11) with rankcore's headers.
 *
 *     rank [-s] model.rankcore < rows.svm
 *
 * Reads svmlight rows, "[label] [qid:n] column:value ... # comment", columns from 1 and ascending;
 * writes the predicted label of each, or the score of a ranker; with -s also an ordinal model's
 * score, exact to the bit.
 * Exit status: 0; 1 after a bad row; 2 after a bad command line or model.
 *
 * Nothing calls setlocale, so numbers are read and written with a point whatever the user's locale.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rankcore_model.h"
#include "rankcore_svmlight.h"

enum { BAD_ROW = 1, BAD_MODEL = 2 };

/* A line of any length. */
struct line {
    char *text;
    size_t size; /* bytes allocated for it */
    long number;
};

static int failed(long line_number, const char *message)
{
    fprintf(stderr, "standard input:%ld: %s\n", line_number, message);
    return BAD_ROW;
}

/* Reads the next line; 0 at the end of the file, -1 if it cannot. */
static int read_line(FILE *file, struct line *line)
{
    size_t length = 0;
    int c;
    line->number++;
    do {
        c = getc(file);
        if (length == line->size) {
            char *longer = (char *)realloc(line->text, line->size ? 2 * line->size : 256);
            if (!longer)
                return -1;
            line->size = line->size ? 2 * line->size : 256;
            line->text = longer;
        }
        line->text[length++] = (char)(c == EOF || c == '\n' ? '\0' : c);
    } while (c != EOF && c != '\n');
    if (ferror(file) || strlen(line->text) + 1 != length)
        return -1; /* a zero byte is no text */
    return c == '\n' || length > 1;
}

static void print_label(const rc_model *model, int32_t rank)
{
    const rc_model_text label = rc_model_label(model, rank);
    if (label.first)
        printf("%.*s", (int)label.n, label.first);
    else
        printf("%.17g", rc_model_label_number(model, rank));
}

/* Answers all rows of a file. */
static int answer(const rc_model *model, FILE *file, int with_scores)
{
    const size_t d = (size_t)model->n_features;
    double *values = (double *)calloc(d, sizeof *values);
    int32_t *columns = (int32_t *)calloc(d, sizeof *columns);
    struct line line = {NULL, 0, 0};
    int status = 0, more = 0;
    rc_svmlight row;
    row.columns = columns;
    row.values = values;
    row.n_features = model->n_features;
    if (!values || !columns)
        status = failed(0, "no memory");
    while (!status && (more = read_line(file, &line)) > 0) {
        const int32_t kind = rc_svmlight_read(&row, line.text);
        if (kind == RC_SVMLIGHT_BAD)
            status = failed(line.number, row.error);
        if (kind == RC_SVMLIGHT_ROW) {
            const int64_t offsets[2] = {0, row.n};
            const rc_rows X =
                rc_rows_csr(values, columns, offsets, RC_FLOAT64, 1, model->n_features);
            double score;
            int32_t rank, code;
            code = rc_model_score(model, &X, &score);
            if (code == RC_MODEL_OK && model->n_ranks)
                code = rc_model_rank(model, &X, &rank);
            if (code != RC_MODEL_OK)
                status = failed(line.number, "this model gives a sparse row no score");
            else if (!model->n_ranks)
                printf("%.17g\n", score);
            else {
                print_label(model, rank);
                if (with_scores)
                    printf(" %.17g", score);
                putchar('\n');
            }
        }
    }
    if (more < 0)
        status = failed(line.number, "not a text file, or it cannot be read");
    free(line.text);
    free(columns);
    free(values);
    return status;
}

int main(int argc, char **argv)
{
    const int with_scores = argc > 1 && strcmp(argv[1], "-s") == 0;
    rc_model model;
    int status;

    if (argc != 2 + with_scores) {
        fprintf(stderr, "usage: %s [-s] model.rankcore < rows.svm\n", argv[0]);
        return BAD_MODEL;
    }
    if (rc_model_open_file(&model, argv[1 + with_scores]) != RC_MODEL_OK) {
        fprintf(stderr, "%s: %s\n", argv[1 + with_scores], model.error);
        return BAD_MODEL;
    }
    if (model.form == RC_MODEL_NONE) {
        fprintf(stderr, "%s: %.*s\n", argv[1 + with_scores], (int)model.reason.n,
                model.reason.first);
        status = BAD_MODEL;
    } else
        status = answer(&model, stdin, with_scores);
    rc_model_close(&model);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "standard output: %s\n", strerror(errno));
        return BAD_ROW;
    }
    return status;
}
