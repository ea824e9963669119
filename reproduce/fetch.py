"""Download the data that reproductions read, with checksums.

``python -m reproduce.fetch sst5 chu-stocks`` downloads sets to ``$RANKCORE_DATA`` (or ``--data``)
and writes the files that reproductions read; ``--list`` shows all sets, ``--check`` compares what
is there. docs/data.md has sources and terms. What was downloaded before an interruption is kept.
"""

import argparse
import csv
import gzip
import hashlib
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankcore._core.files import atomic_write
from reproduce.data import DATA
from reproduce.data_layout import BUILDERS

HERE = Path(__file__).parent
# Bytes that are written at once; an interruption loses no more.
CHUNK = 2**16
TERMS = {
    "chu": "no licence stated; property of Wei Chu, built on sets of the UCI and StatLib archives",
    "cystic-fibrosis": "no licence stated; distributed for research with the book of Baeza-Yates "
    "and Ribeiro-Neto",
    "movielens-100k": "research only, cite, do not redistribute, no commercial use without "
    "permission of GroupLens",
    "ohsumed-letor3": "terms of Microsoft Research's LETOR and of the OHSUMED collection: research",
    "sst5": "no licence stated for the data; cite Socher et al. 2013",
}


@dataclass(frozen=True)
class Source:
    """A published file.

    Attributes
    ----------
    url : str
    size : int
        In bytes; a longer answer is refused.
    sha256 : str
    """

    url: str
    size: int
    sha256: str


def sources(table: Path = HERE / "data_sources.tsv") -> dict[str, list[Source]]:
    """Return the published files of each set."""
    found: dict[str, list[Source]] = {}
    with open(table, newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            source = Source(row["url"], int(row["bytes"]), row["sha256"])
            found.setdefault(row["set"], []).append(source)
    return found


def sums(table: Path = HERE / "data_sums.txt") -> dict[str, dict[str, str]]:
    """SHA-256 of the content of each file of a set, unpacked where its name ends in .gz."""
    found: dict[str, dict[str, str]] = {}
    for line in table.read_text().splitlines():
        digest, path = line.split()
        name, _, file = path.partition("/")
        found.setdefault(name, {})[file] = digest
    return found


class Resumed:
    """pooch's downloader, going on where an earlier attempt broke off.

    Parameters
    ----------
    part : Path
        What there is so far.
    size : int
        Bytes at most.
    """

    def __init__(self, part: Path, size: int) -> None:
        self.part, self.size = part, size

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download to a file, as pooch calls it."""
        from pooch import HTTPDownloader

        with open(self.part, "ab") as stream:
            start = stream.tell()
            limited = Limited(stream, self.size, url)

            def look(response: Any, *args: Any, **kwargs: Any) -> None:
                if response.status_code in (200, 416):  # no range: all of it again, or nothing
                    stream.truncate(0)

            HTTPDownloader(
                chunk_size=CHUNK,
                timeout=60,
                headers={"Accept-Encoding": "identity"}
                | ({"Range": f"bytes={start}-"} if start else {}),
                hooks={"response": look},
            )(url, limited, pooch)
        shutil.move(self.part, output_file)


class Limited:
    """A stream that refuses more bytes than a file has."""

    def __init__(self, stream: Any, size: int, url: str) -> None:
        self.stream, self.size, self.url = stream, size, url
        self.flush = stream.flush

    def write(self, chunk: bytes) -> None:
        """Append a chunk."""
        self.stream.seek(0, os.SEEK_END)
        if self.stream.tell() + len(chunk) > self.size:
            self.stream.truncate(0)
            raise ValueError(f"{self.url} must have {self.size} bytes; it sent more")
        self.stream.write(chunk)


def download(source: Source, folder: Path) -> bytes:
    """Return the content of a published file, from ``folder`` if it was downloaded."""
    import pooch

    folder.mkdir(parents=True, exist_ok=True)
    path = pooch.retrieve(
        source.url,
        f"sha256:{source.sha256}",
        source.sha256,
        folder,
        downloader=Resumed(folder / f"{source.sha256}.part", source.size),
    )
    return Path(path).read_bytes()


def content(path: Path) -> bytes:
    """Return the content of a file, unpacked if its name ends in .gz."""
    found = path.read_bytes()
    return gzip.decompress(found) if path.suffix == ".gz" else found


def damaged(folder: Path, expected: dict[str, str]) -> list[str]:
    """Names of files that are missing or differ."""
    bad = []
    for name, digest in expected.items():
        try:
            good = hashlib.sha256(content(folder / name)).hexdigest() == digest
        except (OSError, EOFError):  # not there, or not gzip
            good = False
        if not good:
            bad.append(name)
    return bad


def fetch(name: str, published: list[Source], expected: dict[str, str], data: Path) -> str:
    """Make the files of a set; returns what was done.

    Raises
    ------
    ValueError
        If a file that was downloaded or built has another checksum.
    """
    folder = data / name
    wanted = damaged(folder, expected)
    if not wanted:
        return "there already"
    kept = data / ".downloads"
    files = BUILDERS[name](*(download(one, kept) for one in published))
    made = {f"{file}.gz" if f"{file}.gz" in expected else file: b for file, b in files.items()}
    for file in wanted:
        found = hashlib.sha256(made[file]).hexdigest()
        if found != expected[file]:
            raise ValueError(f"{file} must have SHA-256 {expected[file]}; got {found}")
    folder.mkdir(parents=True, exist_ok=True)
    for file in wanted:
        packed = gzip.compress(made[file], mtime=0) if file.endswith(".gz") else made[file]
        with atomic_write(folder / file) as stream:
            stream.write(packed)
    for one in published:
        (kept / one.sha256).unlink()
    with suppress(OSError):  # what another set has left is kept
        kept.rmdir()
    return f"{len(wanted)} files written"


def main() -> None:
    """Fetch, list or check sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="sets, or all")
    parser.add_argument("--list", action="store_true", help="show all sets")
    parser.add_argument("--check", action="store_true", help="compare the files that are there")
    parser.add_argument("--data", type=Path, default=DATA, help="by default $RANKCORE_DATA")
    arguments = parser.parse_args()
    known, digests = sources(), sums()
    if arguments.list or not arguments.names:
        for name, files in known.items():
            size = sum(one.size for one in files) / 1e6
            terms = TERMS.get(name) or TERMS[name.split("-")[0]]
            print(f"{name:<20} {len(files):>2} files {size:>6.1f} MB   {terms}")
        return
    names = [*known] if arguments.names == ["all"] else arguments.names
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"unknown set {unknown[0]!r}; known are {', '.join(known)}")
    failed = False
    for name in names:
        if arguments.check:
            bad = damaged(arguments.data / name, digests[name])
            said = f"missing or different: {', '.join(bad)}" if bad else "as expected"
            failed |= bool(bad)
        else:
            try:
                said = fetch(name, known[name], digests[name], arguments.data)
            except (OSError, ValueError) as error:  # those of requests are OSErrors
                said, failed = f"failed: {error}", True
        print(f"{name}: {said}", flush=True)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
