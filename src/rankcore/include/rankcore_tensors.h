/* rankcore_tensors.h - contents of a model file: the values and arrays of its header, by name.
 * Part of rankcore_model.h. Nothing is copied or allocated; no byte outside is read. */
#ifndef RANKCORE_TENSORS_H
#define RANKCORE_TENSORS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Part of a file: text, or an array of one to three axes. */
typedef struct rc_model_text {
    const char *first;
    int64_t n; /* bytes; 0 and NULL if there is none */
} rc_model_text;

typedef struct rc_model_array {
    const void *data; /* NULL if there is none */
    int64_t size;     /* items */
    int64_t shape[3];
    int32_t n_axes;
    int32_t dtype; /* RC_MODEL_F64 .. */
} rc_model_array;

enum {
    RC_MODEL_F64 = 0,
    RC_MODEL_F32 = 1,
    RC_MODEL_I64 = 2,
    RC_MODEL_I32 = 3,
    RC_MODEL_U8 = 4,
    RC_MODEL_U32 = 5,
    RC_MODEL_OTHER = 6
};

/* ------------------------------------------------------------------------ JSON subset */

typedef struct rc_json_ {
    const char *at, *end;
    int32_t bad;
} rc_json_;

static inline char rc_json_peek_(rc_json_ *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\r' || *json->at == '\t'))
        json->at++;
    if (json->at < json->end)
        return *json->at;
    json->bad = 1;
    return 0;
}

static inline int32_t rc_json_take_(rc_json_ *json, char expected)
{
    if (json->bad || rc_json_peek_(json) != expected) {
        json->bad = 1;
        return 0;
    }
    json->at++;
    return 1;
}

/* Reads a string without decoding escapes. */
static inline rc_model_text rc_json_string_(rc_json_ *json)
{
    rc_model_text text = {NULL, 0};
    if (!rc_json_take_(json, '"'))
        return text;
    text.first = json->at;
    while (json->at < json->end && *json->at != '"')
        json->at += *json->at == '\\' && json->end - json->at > 1 ? 2 : 1;
    if (json->at >= json->end) {
        json->bad = 1;
        text.first = NULL;
        return text;
    }
    text.n = (int64_t)(json->at - text.first);
    json->at++;
    return text;
}

/* Reads a non-negative integer. */
static inline int64_t rc_json_number_(rc_json_ *json)
{
    int64_t value = 0;
    const char first = rc_json_peek_(json);
    if (first < '0' || first > '9')
        json->bad = 1;
    while (!json->bad && json->at < json->end && *json->at >= '0' && *json->at <= '9') {
        const int32_t digit = *json->at++ - '0';
        if (value > (INT64_MAX - digit) / 10)
            json->bad = 1;
        else
            value = 10 * value + digit;
    }
    return value;
}

static inline int32_t rc_model_is_(rc_model_text text, const char *expected)
{
    return text.first && (size_t)text.n == strlen(expected) &&
           memcmp(text.first, expected, (size_t)text.n) == 0;
}

/* An entry of the header that is an array. Its bytes are first .. last - 1 after the header. */
typedef struct rc_model_entry_ {
    rc_model_array array;
    int64_t first, last;
} rc_model_entry_;

static inline int64_t rc_model_item_(rc_model_text dtype, int32_t *known)
{
    static const struct {
        char name[5];
        int32_t known;
        int64_t bytes;
    } kinds[] = {
        {"F64", RC_MODEL_F64, 8},   {"F32", RC_MODEL_F32, 4},   {"I64", RC_MODEL_I64, 8},
        {"I32", RC_MODEL_I32, 4},   {"U8", RC_MODEL_U8, 1},     {"U32", RC_MODEL_U32, 4},
        {"U64", RC_MODEL_OTHER, 8}, {"U16", RC_MODEL_OTHER, 2}, {"I16", RC_MODEL_OTHER, 2},
        {"I8", RC_MODEL_OTHER, 1},  {"F16", RC_MODEL_OTHER, 2}, {"BOOL", RC_MODEL_OTHER, 1}};
    size_t i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (rc_model_is_(dtype, kinds[i].name)) {
            *known = kinds[i].known;
            return kinds[i].bytes;
        }
    return 0;
}

/* Reads the value of an array's name: {"dtype":"F64","shape":[4],"data_offsets":[0,32]}, in any
 * order. */
static inline rc_model_entry_ rc_json_entry_(rc_json_ *json)
{
    rc_model_entry_ entry;
    int64_t item = 0;
    int32_t parts = 0, k;
    memset(&entry, 0, sizeof entry);
    entry.array.size = 1;
    rc_json_take_(json, '{');
    for (k = 0; k < 3 && !json->bad; k++) {
        const rc_model_text key = rc_json_string_(json);
        rc_json_take_(json, ':');
        if (rc_model_is_(key, "dtype")) {
            item = rc_model_item_(rc_json_string_(json), &entry.array.dtype);
            parts |= 1;
        } else if (rc_model_is_(key, "shape")) {
            parts |= 2;
            rc_json_take_(json, '[');
            while (!json->bad && rc_json_peek_(json) != ']') {
                const int64_t n = rc_json_number_(json);
                if (entry.array.n_axes == 3 || (n && entry.array.size > INT64_MAX / 8 / n))
                    json->bad = 1;
                else {
                    entry.array.shape[entry.array.n_axes++] = n;
                    entry.array.size *= n;
                }
                if (!json->bad && rc_json_peek_(json) == ',')
                    json->at++;
            }
            rc_json_take_(json, ']');
        } else if (rc_model_is_(key, "data_offsets")) {
            parts |= 4;
            rc_json_take_(json, '[');
            entry.first = rc_json_number_(json);
            rc_json_take_(json, ',');
            entry.last = rc_json_number_(json);
            rc_json_take_(json, ']');
        } else
            json->bad = 1;
        if (k < 2)
            rc_json_take_(json, ',');
    }
    rc_json_take_(json, '}');
    if (parts != 7 || !item || entry.first > entry.last ||
        entry.last - entry.first != item * entry.array.size || entry.first % item)
        json->bad = 1;
    return entry;
}

/* ------------------------------------------------------------------------ the header */

/* Entries that can be read: metadata values by key, and arrays by their own names. Values of keys
 * that begin with "scoring." are names of arrays, too. */
static const char *const rc_model_keys_[] = {
    "format",          "version",          "checksum",          "n_features",
    "learner",         "scoring",          "scoring.of",        "scoring.reason",
    "scoring.tie",     "scoring.decision", "scoring.output",    "scoring.kernel",
    "scoring.rule",    "scoring.degree",   "scoring.scaler",    "scoring.zero_missing",
    "scoring.weights", "scoring.at_zero",  "scoring.intercept", "scoring.intercepts",
    "scoring.offsets", "scoring.values",   "scoring.missing",   "scoring.thresholds",
    "scoring.base",    "scoring.votes",    "scoring.features",  "scoring.children",
    "scoring.sides",   "scoring.sets",     "scoring.words",     "scoring.constants",
    "scoring.vectors", "scoring.indices",  "scoring.indptr",    "scoring.norms",
    "scoring.sizes",   "scoring.slots",    "scoring.coefs",     "scoring.curves",
    "scoring.knots",   "scoring.moments",  "scoring.costs",     "scoring.center",
    "scoring.scale",   "scoring.shift",    "scoring.bounds",    "scoring.tasks",
    "scoring.link",    "scoring.biases",   "scoring.means",     "scoring.factors"};
static const char *const rc_model_names_[] = {"feature_names",
                                              "feature_names.ends",
                                              "scaler.feature_names",
                                              "scaler.feature_names.ends",
                                              "classes",
                                              "classes.ends",
                                              "~crc32"};

enum {
    RC_MODEL_KEYS_ = sizeof rc_model_keys_ / sizeof *rc_model_keys_,
    RC_MODEL_NAMES_ = sizeof rc_model_names_ / sizeof *rc_model_names_
};

/* Maximum length of a header of this format. */
#define RC_MODEL_LONGEST_HEADER_ 100000000u

/* Locations of the header and the arrays of a file, and the contents of its header. */
typedef struct rc_model_file_ {
    const char *header, *header_end;
    const unsigned char *data;
    int64_t n_data;
    rc_model_text metadata[RC_MODEL_KEYS_];
    rc_model_array parts[RC_MODEL_KEYS_]; /* the arrays that metadata names */
    rc_model_array named[RC_MODEL_NAMES_];
} rc_model_file_;

/* Returns the index of a text among names; -1 if missing. */
static inline int32_t rc_model_place_(rc_model_text text, const char *const *names, int32_t n)
{
    int32_t k;
    for (k = 0; k < n; k++)
        if (rc_model_is_(text, names[k]))
            return k;
    return -1;
}

/* Stores an array of the header: by its own name or, once metadata is read, by the keys that name
 * it. */
static inline void rc_model_keep_(rc_model_file_ *file, rc_model_text name, rc_model_array array,
                                  int32_t metadata_known, rc_json_ *json)
{
    int32_t k;
    if (!metadata_known) {
        k = rc_model_place_(name, rc_model_names_, RC_MODEL_NAMES_);
        if (k >= 0) {
            json->bad |= file->named[k].data != NULL;
            file->named[k] = array;
        }
        return;
    }
    for (k = 0; k < RC_MODEL_KEYS_; k++)
        if (file->metadata[k].first && file->metadata[k].n == name.n &&
            memcmp(file->metadata[k].first, name.first, (size_t)name.n) == 0) {
            json->bad |= file->parts[k].data != NULL;
            file->parts[k] = array;
        }
}

static inline void rc_model_read_metadata_(rc_model_file_ *file, rc_json_ *json,
                                           int32_t metadata_known)
{
    rc_json_take_(json, '{');
    while (!json->bad && rc_json_peek_(json) != '}') {
        const rc_model_text key = rc_json_string_(json);
        rc_model_text value;
        rc_json_take_(json, ':');
        value = rc_json_string_(json);
        if (!json->bad && !metadata_known) {
            const int32_t k = rc_model_place_(key, rc_model_keys_, RC_MODEL_KEYS_);
            if (k >= 0) {
                json->bad |= file->metadata[k].first != NULL;
                file->metadata[k] = value;
            }
        }
        if (!json->bad && rc_json_peek_(json) == ',')
            json->at++;
    }
    rc_json_take_(json, '}');
}

/* Parses the whole header once, and validates every entry; without `metadata_known` stores
 * metadata and named arrays, with it the arrays that metadata names. Returns whether the header is
 * valid. */
static inline int32_t rc_model_walk_(rc_model_file_ *file, int32_t metadata_known)
{
    rc_json_ json;
    json.at = file->header;
    json.end = file->header_end;
    json.bad = 0;
    rc_json_take_(&json, '{');
    while (!json.bad && rc_json_peek_(&json) != '}') {
        const rc_model_text key = rc_json_string_(&json);
        rc_json_take_(&json, ':');
        if (rc_model_is_(key, "__metadata__"))
            rc_model_read_metadata_(file, &json, metadata_known);
        else {
            rc_model_entry_ entry = rc_json_entry_(&json);
            if (entry.last > file->n_data)
                json.bad = 1;
            if (!json.bad) {
                entry.array.data = file->data + entry.first;
                rc_model_keep_(file, key, entry.array, metadata_known, &json);
            }
        }
        if (!json.bad && rc_json_peek_(&json) == ',')
            json.at++;
    }
    rc_json_take_(&json, '}');
    while (!json.bad && json.at < json.end)
        json.bad |= *json.at++ != ' ';
    return !json.bad;
}

static inline rc_model_text rc_model_text_(const char *words)
{
    rc_model_text text;
    text.first = words;
    text.n = (int64_t)strlen(words);
    return text;
}

static inline rc_model_text rc_model_fact_(const rc_model_file_ *file, const char *key)
{
    const int32_t k = rc_model_place_(rc_model_text_(key), rc_model_keys_, RC_MODEL_KEYS_);
    const rc_model_text none = {NULL, 0};
    return k < 0 ? none : file->metadata[k];
}

static inline rc_model_array rc_model_named_(const rc_model_file_ *file, const char *name)
{
    const int32_t k = rc_model_place_(rc_model_text_(name), rc_model_names_, RC_MODEL_NAMES_);
    rc_model_array none;
    memset(&none, 0, sizeof none);
    return k < 0 ? none : file->named[k];
}

/* Returns the array named by a metadata key; data is NULL unless it has these axes and this type.
 */
static inline rc_model_array rc_model_part_(const rc_model_file_ *file, const char *key,
                                            int32_t dtype, int32_t n_axes)
{
    const int32_t k = rc_model_place_(rc_model_text_(key), rc_model_keys_, RC_MODEL_KEYS_);
    rc_model_array array;
    memset(&array, 0, sizeof array);
    if (k >= 0)
        array = file->parts[k];
    if (array.dtype != dtype || array.n_axes != n_axes)
        array.data = NULL;
    return array;
}

static inline int64_t rc_model_integer_(rc_model_text text)
{
    rc_json_ json;
    int64_t value;
    if (!text.first || !text.n)
        return -1;
    json.at = text.first;
    json.end = text.first + text.n;
    json.bad = 0;
    value = rc_json_number_(&json);
    return json.bad || json.at != json.end ? -1 : value;
}

/* Returns the CRC-32 of bytes, as in zlib, eight at a time. O(n). */
static inline uint32_t rc_crc32_(const unsigned char *bytes, size_t n)
{
    uint32_t table[8][256], crc = 0xFFFFFFFFu;
    uint32_t i, k;
    for (i = 0; i < 256; i++) {
        uint32_t c = i;
        for (k = 0; k < 8; k++)
            c = c & 1u ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        table[0][i] = c;
    }
    for (k = 1; k < 8; k++)
        for (i = 0; i < 256; i++)
            table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 255u];
    for (; n >= 8; n -= 8, bytes += 8) {
        const uint32_t a = crc ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
                                  (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24);
        crc = table[7][a & 255u] ^ table[6][a >> 8 & 255u] ^ table[5][a >> 16 & 255u] ^
              table[4][a >> 24] ^ table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]] ^
              table[0][bytes[7]];
    }
    for (; n; n--, bytes++)
        crc = (crc >> 8) ^ table[0][(crc ^ *bytes) & 255u];
    return crc ^ 0xFFFFFFFFu;
}

static inline int32_t rc_model_locate_(const unsigned char *bytes, size_t size,
                                       rc_model_file_ *file)
{
    uint64_t n = 0;
    int32_t i;
    if (size < 8)
        return 0;
    for (i = 7; i >= 0; i--)
        n = n << 8 | bytes[i];
    if (n > size - 8 || n > RC_MODEL_LONGEST_HEADER_ || n < 2 || n % 8)
        return 0;
    memset(file, 0, sizeof *file);
    file->header = (const char *)bytes + 8;
    file->header_end = file->header + n;
    file->data = bytes + 8 + n;
    file->n_data = (int64_t)(size - 8 - (size_t)n);
    return *file->header == '{' && rc_model_walk_(file, 0) && rc_model_walk_(file, 1);
}

/* Returns whether offsets start with 0, are non-decreasing and end with `last`. */
static inline int32_t rc_model_offsets_(const int64_t *offsets, int64_t n, int64_t last)
{
    int64_t i, bad = offsets[0] != 0 || offsets[n] != last;
    for (i = 0; i < n; i++)
        bad |= offsets[i] > offsets[i + 1];
    return !bad;
}

static inline int32_t rc_model_ends_(const int64_t *ends, int64_t n, int64_t last)
{
    int64_t i, before = 0, bad = 0;
    for (i = 0; i < n; i++) {
        bad |= ends[i] < before;
        before = ends[i];
    }
    return !bad && before == last;
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_TENSORS_H */
