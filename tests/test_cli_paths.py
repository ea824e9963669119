"""No command writes a file that it reads, or one file twice, whatever the links."""

import os
import re
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import Annotated, get_type_hints

import pytest

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

import typer
from typer.testing import CliRunner

import rankcore as rc
from rankcore.cli.app import app
from rankcore.cli.paths import Reads, Writes, declared, guarded
from rankcore.datasets import dump_letor

COMMANDS = {one.callback.__name__: one.callback for one in app.registered_commands}
COMMANDS |= {
    f"{group.name} {one.callback.__name__}": one.callback
    for group in app.registered_groups
    for one in group.typer_instance.registered_commands
}
# Strings that name no file. A new one belongs here, or is marked in its declaration.
NO_FILES = {
    "calibrate",
    "categorical", "classes", "column", "columns", "convention", "covariate", "degree",
    "disconnected", "estimator", "first", "format", "judge", "kind", "label", "loser", "method",
    "metric", "model", "name", "on_error", "pair", "qid", "query", "second", "set_", "tag",
    "thresholds", "ties", "weight", "winner",
}  # fmt: skip
X, Y = [[1.0, 0], [0, 1], [1, 1]], [3, 1, 2]


def flags(name, command):
    """Name of a parameter on the command line; None of an argument."""
    info = next(
        one
        for one in get_type_hints(command, include_extras=True)[name].__metadata__
        if isinstance(one, typer.models.ParameterInfo)
    )
    if isinstance(info, typer.models.ArgumentInfo):
        return None
    return next(
        (one for one in info.param_decls if one.startswith("--")), f"--{name.replace('_', '-')}"
    )


def pairs():
    """Every path that a command writes, with every other path that it names."""
    for name, command in COMMANDS.items():
        marks = declared(command)
        for written, mark in marks.items():
            if isinstance(mark, Writes):
                for other, its in marks.items():
                    # Two paths that are written are a pair once.
                    if other != written and (isinstance(its, Reads) or other > written):
                        yield name, written, other


def arguments(name, given, usual):
    """Return a command line in which some parameters name these files."""
    command, line = COMMANDS[name], name.split()
    for parameter in declared(command):
        flag = flags(parameter, command)
        path = given.get(parameter)
        if flag is None:
            line.append(str(path or usual[parameter]))
        elif path is not None:
            line += [flag, str(path)]
        elif parameter == "output" and name in ("train", "tune"):
            line += [flag, str(usual["output"])]
    return line


def test_every_string_is_marked_or_known_to_name_no_file():
    assert len(COMMANDS) > len(app.registered_commands) >= 10
    strings = set()
    for command in COMMANDS.values():
        marks = declared(command)
        for name, hint in get_type_hints(command).items():
            if name not in marks and name != "return" and "str" in str(hint):
                strings.add(name)
    assert strings == NO_FILES


@pytest.mark.parametrize("option", ["--output", "--run"])
def test_a_dash_is_not_a_file_to_write(tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    dump_letor(X, Y, "rows", qid=[1, 1, 1])
    rc.save(rc.RankSVM().fit(X, Y, qid=[1, 1, 1]), "model")
    found = CliRunner().invoke(app, ["predict", "model", "rows", option, "-"])
    assert found.exit_code == 1
    assert "- cannot be written: name a file" in found.stderr
    assert not Path("-").exists()


def test_a_path_without_a_mark_is_rejected_when_the_command_is_made():
    def forgetful(
        data: Annotated[str, Reads(), typer.Argument()],
        log: Annotated[Path | None, typer.Option()] = None,
    ) -> None:
        """Write a log."""

    with pytest.raises(TypeError, match="forgetful: mark log, a path, as Reads or Writes"):
        guarded(forgetful)


def test_expected_path_parameters_exist():
    found = set(pairs())
    assert len(found) >= 20
    assert {
        ("train", "output", "params"),
        ("train", "output", "valid"),
        ("export", "output", "names"),
        ("tune", "output", "trials"),
        ("explain", "plot", "model"),
        ("predict", "run", "data"),
    } <= found


LINKS = ["none", "dots", "symbolic", "both symbolic", "hard", "chain"]


# One function compares paths, whatever the command and the options: links in turn.
@pytest.mark.parametrize(
    ("name", "written", "other", "link"),
    [(*pair, link) for pair, link in zip(sorted(pairs()), cycle(LINKS), strict=False)],
)
def test_input_and_output_must_differ(name, written, other, link, tmp_path):
    there = tmp_path / "there.c"
    dump_letor(X, Y, there)
    before = there.read_bytes()
    first = second = there
    match link:
        case "dots":
            (tmp_path / "folder").mkdir()
            first = tmp_path / "folder" / ".." / "there.c"
        case "symbolic":
            first = tmp_path / "link.c"
            first.symlink_to(there)
        case "both symbolic":
            first, second = tmp_path / "link.c", tmp_path / "another.c"
            first.symlink_to(there)
            second.symlink_to("there.c")
        case "hard":
            second = tmp_path / "hard.c"
            os.link(there, second)
        case "chain":
            (tmp_path / "one.c").symlink_to("there.c")
            first = tmp_path / "two.c"
            first.symlink_to("one.c")
    mark = declared(COMMANDS[name])[written]
    if mark.folder:  # a directory that is there: the file in it
        folder = tmp_path / "cache"
        folder.mkdir()
        os.link(there, folder / "values.npy")
        first = folder
    usual = {one: tmp_path / one for one in ("model", "data", "output", "files", "log")}
    for path in usual.values():
        if path.name != "output":
            dump_letor(X, Y, path)
    result = CliRunner().invoke(app, arguments(name, {written: first, other: second}, usual))
    assert result.exit_code == 1, result.output
    assert re.search("is (read by|written twice by) this command", result.stderr), result.stderr
    assert there.read_bytes() == before
    assert not (tmp_path / "output").exists()


@pytest.fixture
def model(tmp_path):
    rc.save(rc.PRank(random_state=0).fit(X, Y), tmp_path / "model.h")
    return tmp_path / "model.h"


def fails(*args, stdin=None):
    result = CliRunner().invoke(app, list(map(str, args)), input=stdin)
    assert result.exit_code == 1, result.output
    return result.stderr


def test_companion_files_are_checked(model, tmp_path):
    before = model.read_bytes()
    assert "model.h is read by" in fails("export", model, tmp_path / "model.c")
    assert model.read_bytes() == before


def test_patterns_and_directories_are_checked(tmp_path):
    for name in ["a.txt", "b.txt"]:
        dump_letor(X, Y, tmp_path / name)
    assert "is read by" in fails("train", tmp_path / "*.txt", "-o", tmp_path / "b.txt")
    deep = tmp_path / "some" / "deep" / "c.txt"
    deep.parent.mkdir(parents=True)
    dump_letor(X, Y, deep)
    assert "is read by" in fails("train", tmp_path / "**" / "c.txt", "-o", deep)
    result = CliRunner().invoke(
        app, ["cache", str(tmp_path / "*.txt"), "-o", str(tmp_path / "cache")]
    )
    assert result.exit_code == 0
    before = (tmp_path / "cache" / "values.npy").read_bytes()
    for name in ["values.npy", "rows.json"]:
        assert "is read by" in fails("train", tmp_path / "cache", "-o", tmp_path / "cache" / name)
        assert "is written twice" in fails(
            "train", tmp_path / "a.txt", "--cache", tmp_path / "cache",
            "-o", tmp_path / "cache" / name,
        )  # fmt: skip
    assert (tmp_path / "cache" / "values.npy").read_bytes() == before


def test_new_outputs_are_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dump_letor(X, Y, "rows.txt")
    Path("link").symlink_to("new")
    for other in ["new", "./new", "link", tmp_path / "new"]:
        assert "is written twice" in fails("tune", "rows.txt", "-o", "new", "--trials", other)
    assert sorted(os.listdir()) == ["link", "rows.txt"]


# ---------------------------------------------------------------- a full device


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("args", [["--version"], ["train", "--help"], [], ["info"]])
def test_full_device_raises_a_one_line_error(args, model):
    if args == ["info"]:
        args = ["info", str(model)]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rankcore", *args],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=120,
        )
    if args:
        assert done.stderr == b"rankcore: error: No space left on device\n"
        assert done.returncode == 1
    else:
        assert b"Traceback" not in done.stderr


def test_failed_prediction_keeps_the_older_file(model, tmp_path, monkeypatch):
    dump_letor(X, Y, tmp_path / "rows.txt")
    (tmp_path / "out").write_text("older")
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "full")))
    message = fails("predict", model, tmp_path / "rows.txt", "-o", tmp_path / "out")
    assert message == f"rankcore: error: {tmp_path / 'out'}: full\n"
    assert (tmp_path / "out").read_text() == "older"
