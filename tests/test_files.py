"""Files appear whole or not at all: links, modes, full disks, kills and other writers."""

import os
import stat
import time

import numpy as np
import pytest

import rankcore as rc
from children import Child, run
from rankcore._core.files import atomic_write
from rankcore.datasets import Run, dump_letor, open_rows, write_run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, modes and signals of POSIX")

X, Y = np.eye(4), [1, 2, 3, 2]


@pytest.fixture(scope="module")
def model():
    return rc.PRank(random_state=0).fit(X, Y)


def write(way, model, path):
    """Write a new file at a path, by one of the writers."""
    if way == "save":
        rc.save(model, path)
    elif way == "export":
        rc.export(model, path, "ranklib")
    elif way == "dump_letor":
        dump_letor(X, Y, path)
    else:
        write_run(Run(np.array(["q"]), np.array(["d"]), np.array([1.0]), "tag"), path)


WAYS = ["save", "export", "dump_letor", "run"]
ways = pytest.mark.parametrize("way", WAYS)


def hidden(folder):
    return [name for name in os.listdir(folder) if name.startswith(".")]


@ways
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_the_mode_of_an_older_file_is_kept(way, mode, model, tmp_path):
    path = tmp_path / "file"
    path.write_text("older")
    path.chmod(mode)
    write(way, model, path)
    assert path.read_bytes() != b"older"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["file"]


@ways
def test_a_new_file_has_the_usual_mode(way, model, tmp_path):
    write(way, model, tmp_path / "file")
    (tmp_path / "other").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


@ways
def test_links_are_followed_and_stay_links(way, model, tmp_path):
    real = tmp_path / "there" / "real"
    real.parent.mkdir()
    (tmp_path / "second").symlink_to(real)
    (tmp_path / "first").symlink_to("second")
    for content in (None, "older"):
        if content is not None:
            real.write_text(content)
            real.chmod(0o600)
        write(way, model, tmp_path / "first")
        assert (tmp_path / "first").is_symlink()
        assert (tmp_path / "second").is_symlink()
        assert not real.is_symlink()
        assert real.stat().st_size > 5
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        write(way, model, loop)
    assert not hidden(tmp_path)
    assert not hidden(real.parent)


def test_a_header_of_c_follows_its_own_link(model, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "m.h").symlink_to(tmp_path / "there" / "other.h")
    rc.export(model, tmp_path / "m.c", "c")
    assert (tmp_path / "m.h").is_symlink()
    assert b'"m.h"' in (tmp_path / "m.c").read_bytes()
    assert b"#define" in (tmp_path / "there" / "other.h").read_bytes()


@pytest.mark.parametrize("way", ["save", "export"])
def test_directories_and_devices_are_not_replaced(way, model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a file"):
        write(way, model, tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a file"):
        write(way, model, tmp_path)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


# ---------------------------------------------------------------- full disks


FULL = """
import resource, signal, sys, numpy as np, rankcore as rc
from rankcore.datasets import Run, dump_letor, open_rows, write_run
way, path, rows = sys.argv[1:]
# No file may grow beyond a size, which is how a full disk looks.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
X, y = np.random.default_rng(0).normal(size=(3000, 40)), np.arange(3000) % 3
try:
    if way == "cache":
        open_rows(rows, cache=path)
    elif way == "dump_letor":
        dump_letor(X, y, path)
    elif way == "run":
        ids = np.arange(3000).astype(str)
        write_run(Run(ids, ids, X[:, 0], "tag"), path)
    else:
        model = rc.VotedPRank(max_iter=1, random_state=0).fit(X, y)
        (rc.save if way == "save" else lambda *a: rc.export(*a, "sql"))(model, path)
except OSError as error:
    assert error.filename == path, repr(error)
    sys.exit(7)
"""


@pytest.mark.parametrize("way", ["save", "cache", "dump_letor", "run"])
def test_a_full_disk_is_an_error_that_names_the_file(way, tmp_path):
    rng = np.random.default_rng(0)
    dump_letor(rng.normal(size=(3000, 40)), np.arange(3000) % 3, tmp_path / "rows.txt")
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "new"
    if way != "cache":
        path.write_text("older")
    before = os.listdir(path.parent)
    status, output = run(FULL, way, path, tmp_path / "rows.txt")
    assert status == 7, output
    assert os.listdir(path.parent) == before
    assert way == "cache" or path.read_text() == "older"


COMMAND = """
import os, resource, signal, sys
folder, size, *sys.argv[1:] = sys.argv[1:]
os.chdir(folder)
if size:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
from rankcore.cli.app import main
sys.exit(main())
"""
COMMANDS = {
    "plot": ["explain", "model", "rows.txt", "--plot"],
    "html": ["explain", "model", "rows.txt", "--html"],
}


@pytest.mark.parametrize("option", COMMANDS)
def test_a_full_disk_leaves_the_older_file_of_a_command(option, tmp_path):
    pytest.importorskip("typer")
    if option == "plot":
        pytest.importorskip("matplotlib")
        import matplotlib.font_manager  # noqa: F401  # which writes a cache
    dump_letor(np.repeat(X, 8, axis=0), np.repeat(Y, 8), tmp_path / "rows.txt")
    rc.save(rc.PRank(random_state=0).fit(X, Y), tmp_path / "model")
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "older.png"

    def written(size):
        path.write_text("older")
        path.chmod(0o600)
        return run(COMMAND, tmp_path, size, *COMMANDS[option], path)

    status, output = written(30)
    assert status == 1
    assert b"File too large" in output
    assert b"older.png" in output
    assert path.read_text() == "older"
    status, output = written("")
    assert status == 0, output
    assert path.read_text(errors="replace") != "older"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["older.png"]


# ---------------------------------------------------------------- kills

# Writes again and again; prints a line before each.
WRITING = """
import sys, os, itertools, shutil, numpy as np, rankcore as rc
from rankcore.datasets import dump_letor, open_rows
way, folder = sys.argv[1:]
rng = np.random.default_rng(0)
X, y = rng.normal(size=(400, 30)), np.arange(400) % 3
model = rc.PRank(random_state=0).fit(X, y)
rows = os.path.join(folder, "rows.txt")
if way == "cache" and not os.path.exists(rows):
    dump_letor(X, y, rows)
path = os.path.join(folder, "new.c")
for i in itertools.count():
    print(i, flush=True)
    if way == "save":
        rc.save(model, path)
    elif way == "export":
        rc.export(model, path, "c")
    elif way == "dump_letor":
        dump_letor(X, y, path)
    else:
        if os.path.exists(path):
            os.rename(path, path + str(i))
            shutil.rmtree(path + str(i))
        open_rows(rows, cache=path)
"""


@pytest.mark.parametrize("way", ["save", "export", "dump_letor", "cache"])
def test_kill_leaves_the_old_file_or_the_new_one(way, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "new.c"
    for _ in range(int(os.environ.get("RANKCORE_KILLS", "4"))):
        with Child(WRITING, way, tmp_path) as child:
            for _ in range(3):
                assert child.output.readline()
            time.sleep(rng.uniform(0, 0.05))
        if way == "save":
            assert rc.load(path, verify=True).n_features_in_ == 30
        elif way == "export":
            assert path.read_bytes().rstrip().endswith(b"}")
        elif way == "dump_letor":
            assert path.read_bytes().count(b"\n") == 400
        elif path.exists():  # the writer deletes it before it makes it again
            assert open_rows(path).stats().n_rows == 400


def test_exception_keeps_the_older_file(tmp_path):
    (tmp_path / "file").write_text("older")

    def write_half():
        with atomic_write(tmp_path / "file") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert (tmp_path / "file").read_text() == "older"
    assert os.listdir(tmp_path) == ["file"]


def test_many_processes_write_to_one_folder(tmp_path):
    code = (
        "import sys\n"
        "from rankcore._core.files import atomic_write\n"
        "for i in range(300):\n"
        "    with atomic_write(f'{sys.argv[1]}/{sys.argv[2]}') as stream:\n"
        "        stream.write(b'x' * 10)\n"
    )
    for child in [Child(code, tmp_path, i % 2) for i in range(4)]:
        with child:
            assert child.wait() == 0
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


# ---------------------------------------------------------------- caches

CACHING = """
import sys, time
from rankcore.datasets import open_rows
time.sleep(max(0, float(sys.argv[3]) - time.monotonic()))
rows = open_rows(sys.argv[1], cache=sys.argv[2])
print(rows.stats().n_rows)
"""


def test_processes_make_the_same_cache_at_once(tmp_path):
    rng = np.random.default_rng(0)
    dump_letor(rng.normal(size=(5000, 20)), np.arange(5000) % 3, tmp_path / "rows.txt")
    for round_ in range(3):
        args = tmp_path / "rows.txt", tmp_path / f"c{round_}", time.monotonic() + 0.2
        children = [Child(CACHING, *args) for _ in range(4)]
        for child in children:
            with child:
                assert child.output.read() == b"5000\n"
                assert child.wait() == 0
    assert hidden(tmp_path) == []


def test_cache_is_written_to_the_target_of_a_link(tmp_path):
    dump_letor(X, Y, tmp_path / "rows.txt")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    open_rows(tmp_path / "rows.txt", cache=tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert open_rows(tmp_path / "real").stats().n_rows == 4


def test_temporary_folder_is_deleted_with_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dump_letor(X, Y, tmp_path / "rows.txt")
    with open(tmp_path / "rows.txt", "rb") as stream:
        rows = open_rows(stream)
    assert len(list(tmp_path.glob("rankcore-*"))) == 1
    del rows
    assert not list(tmp_path.glob("rankcore-*"))
