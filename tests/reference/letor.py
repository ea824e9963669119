"""LETOR text, read plainly: one line after the other, with Python's own words and numbers."""

import re

import numpy as np

NUMBER = re.compile(
    rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)


def number(word):
    """Return the value of a number."""
    if not NUMBER.fullmatch(word):
        raise ValueError(word)
    return float(word)


def read(text, first=1, finite=True):
    """Labels, query ids (as written; None without), rows as dicts, comments (None where none is).

    ``first`` is the number of column 0, or "auto". Raises ValueError for what is not LETOR text.
    """
    labels, qids, rows, comments = [], [], [], []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        data, mark, comment = line.partition(b"#")
        words = data.split()
        if b"\0" in line:
            raise ValueError("NUL")
        if not words:
            continue
        labels.append(number(words.pop(0)))
        qids.append(None)
        if words and words[0].startswith(b"qid:"):
            qids[-1] = words.pop(0)[4:]
            if not qids[-1]:
                raise ValueError("empty qid")
        row, last = {}, -1
        for word in words:
            name, colon, value = word.partition(b":")
            if not (colon and re.fullmatch(rb"[0-9]+", name)):
                raise ValueError(word)
            column = int(name)
            if column <= last or column < (first == 1) or column > 2**31 - 2 + (first != 0):
                raise ValueError(word)
            last, row[column] = column, number(value)
        rows.append(row)
        comments.append(comment.strip() if mark else None)
    if not rows or len({qid is None for qid in qids}) > 1:
        raise ValueError("no rows, or qid in some of them")
    if finite and not np.isfinite([*labels, *(v for row in rows for v in row.values())]).all():
        raise ValueError("not finite")
    if first == "auto":
        first = 0 if any(0 in row for row in rows) else 1
    rows = [{column - first: value for column, value in row.items()} for row in rows]
    if any(column > 2**31 - 2 for row in rows for column in row):
        raise ValueError("too large")
    if qids[0] is None:
        qids = None
    elif all(re.fullmatch(rb"[+-]?[0-9]{1,19}", q) and abs(int(q)) < 2**63 for q in qids):
        qids = [int(qid) for qid in qids]
    else:
        qids = [qid.decode("utf-8", "surrogateescape") for qid in qids]
    return labels, qids, rows, comments
