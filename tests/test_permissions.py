"""Permissions of files that replace others: those of the file that is replaced."""

import os

import numpy as np
import pytest

import rankcore as rc
from rankcore.datasets import dump_letor

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755, 0o440])
def test_replaced_file_keeps_its_mode(mode, tmp_path):
    X, y = np.eye(3), np.arange(3)
    model = rc.PRank().fit(X, y)
    for write in (lambda path: rc.save(model, path), lambda path: dump_letor(X, y, path)):
        path = tmp_path / "file"
        write(path)
        os.chmod(path, mode)
        before = path.stat().st_ino
        write(path)
        assert path.stat().st_ino != before  # another file in its place
        assert path.stat().st_mode & 0o777 == mode
        path.unlink()
