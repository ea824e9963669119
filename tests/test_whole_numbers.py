"""Whole numbers where float64 begins to miss some: taken up to 2**53 - 1, else kept or rejected."""

import io

import numpy as np
import pytest

import rankcore as rc
from rankcore._core.sources import StatsCollector
from rankcore.datasets import Qrels, open_rows, read_qrels

LAST = 2**53 - 1  # the last whole number that no other one rounds to


def facts(labels):
    collector = StatsCollector(1)
    collector.add(np.array(labels, float), np.zeros(0, np.int32), np.zeros(0))
    return collector.finish(False, "rows")


@pytest.mark.parametrize("sign", [1, -1])
def test_labels_of_files_are_integers_if_no_digit_is_lost(sign, tmp_path):
    for label, kind in [(LAST, "i"), (2**53, "f")]:
        assert facts([sign * label, 1]).labels.dtype.kind == kind
        path = tmp_path / f"{label}.txt"
        path.write_text(f"{sign * label} 1:1\n1 1:2\n")
        for cache in (tmp_path / f"{label}", tmp_path / f"{label}"):  # written, then read
            assert open_rows(path, cache=cache).stats().labels.dtype.kind == kind


@pytest.mark.parametrize("sign", [1, -1])
def test_labels_of_commands_are_integers_if_no_digit_is_lost(sign, tmp_path):
    pytest.importorskip("typer", reason="the command line needs the cli extra")
    from rankcore.cli.options import Layout
    from rankcore.cli.rows import read
    from rankcore.cli.terminal import progress_bar

    for label, kind in [(LAST, "i"), (2**53, "f")]:
        path = tmp_path / f"{label}.txt"
        path.write_text(f"{sign * label} 1:1\n1 1:2\n")
        with progress_bar(quiet=True) as bar:
            labels = read(str(path), Layout(), bar).y
        assert labels.dtype.kind == kind
        assert labels.tolist() == [sign * label, 1]


@pytest.mark.parametrize("sign", [1, -1])
def test_judgments_are_rejected_where_others_round_to_them(sign):
    assert read_qrels(io.BytesIO(b"1 0 d %d" % (sign * LAST))).rel.tolist() == [sign * LAST]
    assert Qrels(["a"], ["b"], [sign * LAST]).rel.tolist() == [sign * LAST]
    with pytest.raises(ValueError, match=r"a whole number of absolute value below 2\*\*53"):
        read_qrels(io.BytesIO(b"1 0 d %d" % (sign * 2**53)))
    for number in (sign * 2**53, float(sign * 2**53)):
        with pytest.raises(ValueError, match="rel must hold whole numbers"):
            Qrels(["a"], ["b"], [number])


@pytest.mark.parametrize("label", [2**53 + 1, -(2**53) - 1, 2**54 + 1, 2**63 - 1])
def test_labels_that_would_round_are_rejected(label):
    learner = rc.PairwisePerceptron(max_iter=1)
    learner.fit(np.eye(3), [2**53 - 1, 2**53, 2**53 + 2], qid=[0] * 3)
    with pytest.raises(ValueError, match=f"cannot represent {label} exactly"):
        learner.fit(np.eye(3), [label, 1, 2], qid=[0] * 3)
