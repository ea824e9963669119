// Score rows with librankcore from Go, by cgo: see README.md for how to build it.
package main

// #cgo LDFLAGS: -lrankcore
// #include <stdlib.h>
// #include "librankcore.h"
import "C"

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"
)

const unsupported, room = 4, 200

// read returns CSR rows: row i has the values offsets[i] .. offsets[i+1]-1.
func read(file *os.File) (values []float64, columns []int32, offsets []int64, err error) {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<26)
	offsets = []int64{0}
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		for i, item := range strings.Fields(line) {
			name, value, found := strings.Cut(item, ":")
			if i == 0 { // the label
				offsets = append(offsets, int64(len(values)))
			} else if name != "qid" {
				column, wrong := strconv.ParseInt(name, 10, 32)
				number, bad := strconv.ParseFloat(value, 64)
				if !found || wrong != nil || bad != nil {
					return nil, nil, nil, fmt.Errorf("%s is not column:value", item)
				}
				values, columns = append(values, number), append(columns, int32(column)-1)
			}
			offsets[len(offsets)-1] = int64(len(values))
		}
	}
	// One more, so that each slice has an address.
	return append(values, 0), append(columns, 0), offsets, lines.Err()
}

func check(code C.int32_t) error {
	if code == 0 {
		return nil
	}
	return errors.New(C.GoString(C.rankcore_message(code)))
}

func score(path string) error {
	name, text := C.CString(path), (*C.char)(C.malloc(room))
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(text))
	model := C.rankcore_open(name, text, room)
	if model == nil {
		return fmt.Errorf("%s: %s", path, C.GoString(text))
	}
	defer C.rankcore_close(model)
	values, columns, offsets, err := read(os.Stdin)
	if err != nil {
		return err
	}
	n, k := len(offsets)-1, int(C.rankcore_n_ranks(model))
	scores, ranks, table := make([]C.double, n+1), make([]C.int32_t, n+1), make([]C.double, n*k+1)
	v, c, o := (*C.double)(&values[0]), (*C.int32_t)(&columns[0]), (*C.int64_t)(&offsets[0])
	to := map[bool]*C.int32_t{true: &ranks[0]}[k > 0] // nil of a model without ranks
	if err := check(C.rankcore_csr(model, v, c, o, C.int64_t(n), &scores[0], to)); err != nil {
		return err
	}
	code := C.rankcore_csr_probabilities(model, v, c, o, C.int64_t(n), &table[0])
	if code != 0 && code != unsupported { // not every model has probabilities
		return check(code)
	}
	for i, score := range scores[:n] {
		label := "-"
		if k > 0 {
			C.rankcore_label(model, ranks[i], text, room)
			label = C.GoString(text)
		}
		fmt.Print(score, " ", label)
		for _, p := range table[i*k : (i+1)*k] {
			if code == 0 {
				fmt.Print(" ", p)
			}
		}
		fmt.Println()
	}
	return nil
}

func main() {
	if err := score(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
