"""Arrays in temporary files."""

import mmap
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from rankcore._core.disk_arrays import SMALL, allocator_beside, disk_array, release


def test_array_keeps_its_values_when_pages_are_released():
    array = disk_array(SMALL, np.int32)
    assert not array.any()
    array[:] = np.arange(SMALL)
    release(array[3:5], None, np.ones(2), array[:0])
    release(array, array[1000:-1000])
    assert np.array_equal(array, np.arange(SMALL))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_released_pages_are_not_in_memory():
    def resident():
        return mmap.PAGESIZE * int(Path("/proc/self/statm").read_text().split()[1])

    before = resident()
    array = disk_array(10 * SMALL, np.uint8)
    array[:] = 1
    assert resident() - before > 9 * SMALL
    release(array[5 * SMALL :])
    assert resident() - before < 6 * SMALL
    release(array)
    assert resident() - before < SMALL


def test_temporary_file_is_deleted(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    array = disk_array(SMALL, np.uint8)
    if sys.platform != "win32":
        assert not os.listdir(tmp_path)
    assert isinstance(disk_array(SMALL, np.uint8).base, memoryview)
    assert disk_array(SMALL - 1, np.uint8).base is None
    del array
    assert not os.listdir(tmp_path)


def test_work_arrays_of_mapped_rows_are_on_disk(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((10, 3)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert allocator_beside(mapped) is allocator_beside(np.asarray(mapped)[2:]) is disk_array
    assert allocator_beside(np.ones(3)[1:]) is np.empty


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files grow when written to")
def test_a_full_disk_is_an_error_before_any_write():
    with pytest.raises(OSError, match=r"."):
        disk_array(2**50, np.uint8)
