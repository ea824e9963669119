/* Whatever the bytes of a model file are, opening and scoring with them reads nothing beyond them.
 *
 * With Clang, libFuzzer drives this:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -I INCLUDE model.c -lm
 * Elsewhere the program damages the files it is given itself:
 *     cc -g -O1 -fsanitize=address,undefined -DALONE -I INCLUDE model.c -lm
 *     ./a.out TRIALS SEED FILES...
 * Each damaged file lies in an allocation of its own size, so that a sanitizer sees every overrun.
 */

#include "rankcore_model.h"

/* Scores rows of several kinds: full, empty, sparse, with NaN and infinities. */
static void use(const rc_model *model)
{
    enum { N = 3 };
    const int64_t d = model->n_features;
    double scores[N], *values;
    int32_t ranks[N], *columns;
    int64_t offsets[N + 1], i;
    rc_rows X;
    if (d > 4096)
        return;
    values = (double *)malloc((size_t)(N * d) * sizeof *values);
    columns = (int32_t *)malloc((size_t)(N * d) * sizeof *columns);
    if (!values || !columns)
        abort();
    for (i = 0; i < N * d; i++) {
        values[i] = i % 11 == 5 ? NAN : i % 13 == 7 ? 1.0 / 0.0 : (double)(i % 7) - 3.0;
        columns[i] = (int32_t)(i % d);
    }
    X = rc_rows_dense(values, RC_FLOAT64, N, d);
    if (rc_model_check_rows(model, &X) != RC_MODEL_OK)
        abort();
    rc_model_score(model, &X, scores);
    rc_model_rank(model, &X, ranks);
    X = rc_rows_csr(values, columns, offsets, RC_FLOAT64, N, d);
    offsets[0] = offsets[1] = 0;
    offsets[2] = d;
    offsets[3] = 2 * d;
    if (rc_model_check_rows(model, &X) != RC_MODEL_OK)
        abort();
    if (rc_model_rank(model, &X, ranks) == RC_MODEL_OK)
        for (i = 0; i < N; i++)
            if (ranks[i] < 0 || ranks[i] >= model->n_ranks)
                abort();
    rc_model_score(model, &X, scores);
    if ((model->calibrated || model->form == RC_MODEL_ORDINAL_TREES) && model->n_ranks <= 4096) {
        double *table = (double *)malloc(N * (size_t)model->n_ranks * sizeof *table);
        void *room = malloc(rc_model_room(model));
        if (!table || !room)
            abort();
        rc_model_probabilities(model, &X, table, room);
        free(room);
        free(table);
    }
    for (i = -1; i <= d; i++)
        rc_model_feature(model, i);
    for (i = -1; i <= model->n_ranks && i < 100; i++) {
        const rc_model_text label = rc_model_label(model, (int32_t)i);
        volatile char last = 0;
        if (label.n)
            last = label.first[label.n - 1];
        (void)last;
        rc_model_label_number(model, (int32_t)i);
    }
    free(values);
    free(columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rc_model model;
    unsigned char *bytes = (unsigned char *)malloc(size + !size); /* aligned, and not one more */
    uint32_t crc;
    int32_t i;
    if (!bytes)
        abort();
    memcpy(bytes, data, size);
    if (rc_model_open(&model, bytes, size) == RC_MODEL_OK)
        use(&model);
    rc_model_close(&model);
    if (size >= 4) { /* once more with a checksum that fits: what is behind it */
        crc = rc_crc32_(bytes, size - 4);
        for (i = 0; i < 4; i++)
            bytes[size - 4 + (size_t)i] = (unsigned char)(crc >> 8 * i);
        if (rc_model_open(&model, bytes, size) == RC_MODEL_OK)
            use(&model);
        rc_model_close(&model);
    }
    free(bytes);
    return 0;
}

#ifdef ALONE
static uint64_t state;

static uint64_t below(uint64_t n) /* splitmix64 */
{
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return n ? (z ^ (z >> 31)) % n : 0;
}

/* One to four changes; the header is hit as often as all numbers together. */
static size_t damage(unsigned char *bytes, size_t size, size_t header)
{
    static const char *const words[] = {"-1",       "0",       "9",   "99999999999999999999",
                                        "\"",       "{",       "}",   "[]",
                                        "scoring.", "\"F32\"", "null"};
    uint64_t n = 1 + below(4);
    while (n--) {
        const size_t limit = below(2) && header < size ? header : size;
        const size_t at = (size_t)below(limit);
        switch (below(5)) {
        case 0:
            bytes[at] = (unsigned char)below(256);
            break;
        case 1:
            bytes[at] ^= (unsigned char)(1u << below(8));
            break;
        case 2: { /* a word over others */
            const char *word = words[below(sizeof words / sizeof *words)];
            const size_t length = strlen(word);
            if (at + length <= size)
                memcpy(bytes + at, word, length);
            break;
        }
        case 3: { /* a whole number of eight bytes */
            const int64_t values[] = {0, 1, -1, INT64_MAX, INT64_MIN, 255, (int64_t)size};
            const size_t place = at / 8 * 8;
            if (place + 8 <= size)
                memcpy(bytes + place, &values[below(7)], 8);
            break;
        }
        default:
            size = 1 + (size_t)below(size);
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    const long trials = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
    long trial;
    int which;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    for (which = 3; which < argc; which++) {
        unsigned char whole[1 << 16], bad[1 << 16];
        FILE *file = fopen(argv[which], "rb");
        const size_t size = file ? fread(whole, 1, sizeof whole, file) : 0;
        size_t header = size > 8 ? 8 + whole[0] + 256u * whole[1] + 65536u * whole[2] : 0;
        if (!size || header > size)
            return 1;
        fclose(file);
        LLVMFuzzerTestOneInput(whole, size);
        for (trial = 0; trial < trials; trial++) {
            memcpy(bad, whole, size);
            LLVMFuzzerTestOneInput(bad, damage(bad, size, header));
        }
    }
    printf("%ld\n", trials * (argc - 3));
    return argc > 3 ? 0 : 1;
}
#endif
