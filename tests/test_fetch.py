"""Downloads of data: checksums, interruptions, servers that lie; from a server on this machine."""

import gzip
import hashlib
import io
import os
import re
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "reproduce" / "fetch.py").exists():
    pytest.skip("the reproductions are not here", allow_module_level=True)
pytest.importorskip("pooch")
sys.path.insert(0, str(ROOT))

from reproduce import data_layout, fetch  # noqa: E402

JUDGED = (
    b"QN 00001\nQU What?\nNR 00002\nRD  139 1222  151 2211\n     166 0001\n\nQN 00002\nRD 7 0100\n"
)
JUDGMENTS = (
    b"query\tdoc\tREW\tfaculty\tpostdoc\tJBW\n1\t139\t1\t2\t2\t2\n1\t151\t2\t2\t1\t1\n"
    b"1\t166\t0\t0\t0\t1\n2\t7\t0\t1\t0\t0\n"
)


def digest(content):
    return hashlib.sha256(content).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one file, in the way that a test asks for."""

    content = JUDGED
    ranges = True
    breaks_at = None
    status = 200

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers["Range"]
        server.asked.append(wanted)
        start = int(wanted[6:-1]) if wanted and server.ranges else 0
        if server.status != 200 or start >= len(server.content):
            self.send_error(server.status if server.status != 200 else 416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(server.content) - start))
        self.end_headers()
        stop, server.breaks_at = server.breaks_at, None
        self.wfile.write(server.content[start:stop])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


@pytest.fixture
def take(server, tmp_path, monkeypatch):
    """Fetch the judgments; the checksums can be others."""
    monkeypatch.setattr(fetch, "CHUNK", 8)

    def call(sha256=None, made=JUDGMENTS):
        url = f"http://127.0.0.1:{server.server_port}/cfquery"
        source = fetch.Source(url, len(JUDGED), sha256 or digest(JUDGED))
        expected = {"judgments.tsv.gz": digest(made)}
        return fetch.fetch("cystic-fibrosis", [source], expected, tmp_path)

    return call


def left(folder):
    """Files of a folder, but for those of downloads."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and ".downloads" not in path.parts
    )


def test_a_set_is_downloaded_once(take, server, tmp_path):
    assert take() == "1 files written"
    path = tmp_path / "cystic-fibrosis" / "judgments.tsv.gz"
    assert gzip.decompress(path.read_bytes()) == JUDGMENTS
    assert take() == "there already"
    assert server.asked == [None]
    assert not (tmp_path / ".downloads").exists()
    path.write_bytes(b"damaged")
    assert take() == "1 files written"
    assert gzip.decompress(path.read_bytes()) == JUDGMENTS


def test_interrupted_download_resumes(take, server, tmp_path):
    server.breaks_at = 20
    with pytest.raises(OSError, match=r"IncompleteRead|Connection"):
        take()
    assert left(tmp_path) == []
    take()
    assert server.asked == [None, "bytes=16-"]
    assert left(tmp_path) == ["cystic-fibrosis/judgments.tsv.gz"]


def test_a_server_without_ranges_sends_all_again(take, server, tmp_path):
    server.ranges = False
    server.breaks_at = 20
    with pytest.raises(OSError, match=r"IncompleteRead|Connection"):
        take()
    take()
    assert left(tmp_path) == ["cystic-fibrosis/judgments.tsv.gz"]


def test_partial_download_of_another_file_is_deleted(take, server, tmp_path):
    downloads = tmp_path / ".downloads"
    downloads.mkdir()
    part = downloads / f"{digest(JUDGED)}.part"
    part.write_bytes(b"x" * 30)  # goes on to a file with a wrong checksum
    with pytest.raises(ValueError, match="hash"):
        take()
    assert take() == "1 files written"
    downloads.mkdir()
    part.write_bytes(b"x" * 500)  # longer than the file: the server rejects the range
    (tmp_path / "cystic-fibrosis" / "judgments.tsv.gz").unlink()
    with pytest.raises(OSError, match="416"):
        take()
    assert take() == "1 files written"


def test_other_content_is_rejected(take, server, tmp_path):
    server.content = JUDGED.replace(b"1222", b"0000")
    with pytest.raises(ValueError, match="hash"):
        take()
    server.content = JUDGED * 2
    with pytest.raises(ValueError, match=f"must have {len(JUDGED)} bytes; it sent more"):
        take()
    server.content = JUDGED
    with pytest.raises(ValueError, match=r"judgments.tsv.gz must have SHA-256"):
        take(made=b"something else")
    server.status = 404
    with pytest.raises(OSError, match="404"):
        take(sha256=digest(b"elsewhere"))
    assert left(tmp_path) == []


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_archives_are_read_by_name_and_never_unpacked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ratings = b"1\t5\t3\t0\n2\t5\t1\t0\n1\t6\t2\t0\n"
    lines = ratings.splitlines(keepends=True)
    members = {"ml-100k/u.data": ratings, "../outside": b"1", "/outside": b"1"}
    for name, part in [("u1", lines[0]), ("u2", lines[1]), ("u3", lines[2])]:
        members[f"ml-100k/{name}.test"] = part
    members |= dict.fromkeys(["ml-100k/u4.test", "ml-100k/u5.test", "ml-100k/ub.test"], b"")
    members["ml-100k/ua.test"] = lines[1]
    found = data_layout.movielens(zipped(members))
    assert found == {"u.data.tsv": ratings, "splits.tsv": b"1\t0\t0\n2\t1\t0\n3\t0\t0\n"}
    assert list(tmp_path.iterdir()) == []
    assert not (tmp_path.parent / "outside").exists()
    monkeypatch.setattr(data_layout, "LARGEST_MEMBER", 10)
    with pytest.raises(ValueError, match=r"u.data must be below 10 bytes"):
        data_layout.movielens(zipped(members))


def test_partitions_have_the_published_rows():
    X = np.array([[1.0, 0.123456], [2.0, 0.5], [2.0, 0.5], [3.0, 0.25]])
    y = np.array([7.0, 9.0, 8.0, 1.5])
    rounded = np.array([[1.0, 0.12346], [2.0, 0.5], [2.0, 0.5], [3.0, 0.25]])
    parts = {
        "X_train": rounded[None, [3, 1]],
        "t_train": np.array([[1.0, 5.0]]),
        "X_test": rounded[None, [0, 2]],
        "t_test": np.array([[3.0, 4.0]]),
    }
    archives = []
    for arrays in ({"X": X, "y": y}, parts, parts):
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        archives.append(stream.getvalue())
    found = data_layout.chu("toy")(*archives)
    assert found["toy.raw.svm"].startswith(b"7 1:1 2:0.123456\n9 1:2 2:0.5\n")
    # Of two rows with the same features, the lower label is that of the lower target.
    assert found["toy.5bins.svm"] == b"3 1:1 2:0.12346\n5 1:2 2:0.5\n4 1:2 2:0.5\n1 1:3 2:0.25\n"
    lines = found["toy.10bins.partitions.txt"].decode().splitlines()
    assert lines[1:] == ["train 0 3 1", "test 0 0 2"]


def test_bags_of_words_are_read():
    found = data_layout.sst5(b"4 good good film\n0 bad\n", b"2 a film\n", b"1 film \n")
    assert found["vocab.txt"] == b"a\nbad\nfilm\ngood\n"
    assert found["train.bow.svm"] == b"4 3:1 4:2\n0 2:1\n"
    assert found["train.text.tsv"] == b"4\tgood good film\n0\tbad\n"
    assert found["test.bow.svm"] == b"1 3:1\n"


def test_tables_of_sources_and_sums_agree():
    known, sums = fetch.sources(), fetch.sums()
    assert known.keys() == sums.keys() == data_layout.BUILDERS.keys()
    urls = [source.url for files in known.values() for source in files]
    assert all(url.startswith("https://") for url in urls)
    assert len(set(urls)) == len(urls)
    for name in known:
        assert name in fetch.TERMS or name.split("-")[0] in fetch.TERMS
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    for name, files in sums.items():
        assert f"`{name}`" in page
        for path in files:
            like = re.sub(r"S[2-4]", "S1", path)  # "min.S1.txt.gz to min.S5.txt.gz"
            assert like in page or f"NAME.{like.partition('.')[2]}" in page, path


def test_available_data_equal_the_table():
    there = [name for name in fetch.sums() if (fetch.DATA / name).is_dir()]
    if not there:
        pytest.skip(f"no data in {fetch.DATA}; set RANKCORE_DATA")
    bad = {name: fetch.damaged(fetch.DATA / name, fetch.sums()[name]) for name in there}
    assert not any(bad.values()), bad


def test_the_command_downloads_a_set(monkeypatch, capsys, tmp_path, server):
    monkeypatch.setattr(sys, "argv", ["fetch", "--list"])
    fetch.main()
    assert "cystic-fibrosis" in capsys.readouterr().out
    url = f"http://127.0.0.1:{server.server_port}/cfquery"
    monkeypatch.setattr(
        fetch,
        "sources",
        lambda: {"cystic-fibrosis": [fetch.Source(url, len(JUDGED), digest(JUDGED))]},
    )
    monkeypatch.setattr(
        fetch, "sums", lambda: {"cystic-fibrosis": {"judgments.tsv.gz": digest(JUDGMENTS)}}
    )
    where = ["--data", os.fspath(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["fetch", "cystic-fibrosis", "--check", *where])
    with pytest.raises(SystemExit, match="1"):
        fetch.main()
    assert "missing or different: judgments.tsv.gz" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["fetch", "cystic-fibrosis", *where])
    fetch.main()
    assert capsys.readouterr().out == "cystic-fibrosis: 1 files written\n"
    server.status = 500
    (tmp_path / "cystic-fibrosis" / "judgments.tsv.gz").unlink()
    with pytest.raises(SystemExit, match="1"):
        fetch.main()
    assert "failed: 500" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["fetch", "nothing", *where])
    with pytest.raises(SystemExit, match="2"):
        fetch.main()
    assert "unknown set 'nothing'; known are cystic-fibrosis" in capsys.readouterr().err
