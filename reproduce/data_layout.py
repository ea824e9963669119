"""Files of each data set, as reproductions read them, from the files that are published.

A builder takes the published files, in the order of ``data_sources.tsv``, and returns the contents
of files by name.
"""

import io
import zipfile
from collections import Counter
from collections.abc import Callable

import numpy as np

Files = dict[str, bytes]
# Members of an archive may be this large; the largest that is read has 2 MB.
LARGEST_MEMBER = 2**23
HEAD = (
    "# 0-based row numbers of the .svm file, in the order of the source file; "
    "<set> <partition> <rows...>\n"
)
FOLDS = """\
# LETOR 5-fold rule (readme.txt of MQ2008; same for OHSUMED): fold train vali test
1 S1,S2,S3 S4 S5
2 S2,S3,S4 S5 S1
3 S3,S4,S5 S1 S2
4 S4,S5,S1 S2 S3
5 S5,S1,S2 S3 S4
"""


def number(value: float) -> str:
    """Return the shortest text of a number; integers without a point."""
    return repr(float(value)).removesuffix(".0")


def svmlight(labels: np.ndarray, X: np.ndarray) -> bytes:
    """Dense rows as svmlight text, zeros included."""
    lines = (
        " ".join([number(y), *(f"{i}:{number(v)}" for i, v in enumerate(x, 1))]) + "\n"
        for y, x in zip(labels, X, strict=True)
    )
    return "".join(lines).encode()


def chu(name: str) -> Callable[..., Files]:
    """Builder of a set of Chu and Ghahramani's benchmark."""

    def build(*archives: bytes) -> Files:
        raw, *binned = (np.load(io.BytesIO(one), allow_pickle=False) for one in archives)
        X, y = raw["X"], raw["y"]
        files = {f"{name}.raw.svm": svmlight(y, X)}
        for bins, parts in zip((5, 10), binned, strict=False):
            labels, rounded, lines = partitions(X, y, parts)
            files[f"{name}.{bins}bins.svm"] = svmlight(labels, rounded)
            files[f"{name}.{bins}bins.partitions.txt"] = (HEAD + "".join(lines)).encode()
        return files

    return build


def partitions(X: np.ndarray, y: np.ndarray, parts: dict) -> tuple[np.ndarray, np.ndarray, list]:
    """Labels and features of all rows, in the order of the raw table, and the partitions' rows.

    The published partitions hold rows, not their numbers. A row is found again by its features,
    which some partitions have rounded; of rows with equal features, a lower label is taken for a
    lower target.
    """
    whole = [
        (
            [*map(tuple, np.concatenate([parts["X_train"][i], parts["X_test"][i]]))],
            np.concatenate([parts["t_train"][i], parts["t_test"][i]]),
        )
        for i in range(len(parts["X_train"]))
    ]
    n_train = parts["X_train"].shape[1]
    distinct = np.array(sorted(set(whole[0][0])))
    like: dict[tuple, list[int]] = {}
    for i in np.argsort(y, kind="stable"):
        nearest = tuple(distinct[np.abs(distinct - X[i]).max(axis=1).argmin()])
        like.setdefault(nearest, []).append(int(i))
    labels, rounded = np.zeros(len(X)), np.zeros_like(X)
    for x, label in sorted(zip(*whole[0], strict=True)):
        i = like[x].pop(0)
        labels[i], rounded[i] = label, x
    lines = []
    for number_of_part, (rows, targets) in enumerate(whole):
        left: dict[tuple, list[int]] = {}
        for i, (x, label) in enumerate(zip(map(tuple, rounded), labels, strict=True)):
            left.setdefault((x, label), []).append(i)
        places = [str(left[key].pop(0)) for key in zip(rows, targets, strict=True)]
        for kind, some in (("train", places[:n_train]), ("test", places[n_train:])):
            lines.append(f"{kind} {number_of_part} {' '.join(some)}\n")
    return labels, rounded, lines


def sst5(*published: bytes) -> Files:
    """Sentences with their labels, and their bags of words."""
    texts = {
        name: [line.split(" ", 1) for line in content.decode().split("\n")[:-1]]
        for name, content in zip(("train", "dev", "test"), published, strict=True)
    }
    words = sorted({word for rows in texts.values() for _, text in rows for word in text.split()})
    numbers = {word: i for i, word in enumerate(words, 1)}
    files = {"vocab.txt": "".join(f"{word}\n" for word in words).encode()}
    for name, rows in texts.items():
        bags = (
            (label, sorted(Counter(numbers[word] for word in text.split()).items()))
            for label, text in rows
        )
        files[f"{name}.bow.svm"] = "".join(
            f"{label}{''.join(f' {i}:{n}' for i, n in bag)}\n" for label, bag in bags
        ).encode()
        files[f"{name}.text.tsv"] = "".join(f"{label}\t{text}\n" for label, text in rows).encode()
    return files


def cystic_fibrosis(queries: bytes) -> Files:
    """Judgments of four judges; in ``cfquery`` they are lists of a document and four digits."""
    lines, query, judged = ["query\tdoc\tREW\tfaculty\tpostdoc\tJBW\n"], 0, False
    for line in queries.decode("latin-1").splitlines():
        field = line[:2].strip()
        if field == "QN":
            query = int(line[2:])
        judged = field == "RD" if field else judged and bool(line.strip())
        if judged:
            cells = line[2:].split()
            for document, scores in zip(cells[::2], cells[1::2], strict=True):
                lines.append("\t".join([str(query), str(int(document)), *scores]) + "\n")
    return {"judgments.tsv": "".join(lines).encode()}


def ohsumed(*parts: bytes) -> Files:
    """Return the five parts of both versions: the test parts of folds 2, 3, 4, 5 and 1."""
    names = [f"{kind}.S{i}.txt" for kind in ("min", "norm") for i in range(1, 6)]
    return {**dict(zip(names, parts, strict=True)), "folds.txt": FOLDS.encode()}


def movielens(archive: bytes) -> Files:
    """Ratings, and for each its fold of u1 .. u5 and whether ua.test and ub.test hold it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:

        def member(name: str) -> bytes:
            # Read by name, never unpacked: no path in an archive is followed.
            info = opened.getinfo(f"ml-100k/{name}")
            if info.file_size > LARGEST_MEMBER:
                raise ValueError(
                    f"{name} must be below {LARGEST_MEMBER} bytes; it has {info.file_size}"
                )
            return opened.read(info)

        ratings = member("u.data")
        tests = {
            name: pairs(member(f"{name}.test"))
            for name in ("u1", "u2", "u3", "u4", "u5", "ua", "ub")
        }
    folds = {pair: str(i) for i in range(1, 6) for pair in tests[f"u{i}"]}
    lines = (
        f"{folds[pair]}\t{int(pair in tests['ua'])}\t{int(pair in tests['ub'])}\n"
        for pair in pairs(ratings, ordered=True)
    )
    return {"u.data.tsv": ratings, "splits.tsv": "".join(lines).encode()}


def pairs(table: bytes, ordered: bool = False) -> list | set:
    """User and film of each line."""
    found = [tuple(line.split(b"\t")[:2]) for line in table.splitlines()]
    return found if ordered else set(found)


CHU = (
    "abalone",
    "autompg",
    "bostonhousing",
    "diabetes",
    "machinecpu",
    "pyrimidines",
    "stocks",
    "triazines",
    "wisconsin",
)
BUILDERS: dict[str, Callable[..., Files]] = {
    **{f"chu-{name}": chu(name) for name in CHU},
    "cystic-fibrosis": cystic_fibrosis,
    "movielens-100k": movielens,
    "ohsumed-letor3": ohsumed,
    "sst5": sst5,
}
