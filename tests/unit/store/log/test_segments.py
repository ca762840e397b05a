from pathlib import Path

import pytest

from rocketmq_broker.store.files import OpenFiles, OsFileSystem
from rocketmq_broker.store.log.segments import Segments


def test_a_file_that_would_leave_a_hole_is_refused(tmp_path: Path) -> None:
    segments = Segments(tmp_path, 1024, OpenFiles(OsFileSystem(), 4))
    segments.create(1024)
    for start in (0, 1024, 3072):
        with pytest.raises(ValueError, match="the end of the last one, not at"):
            segments.create(start)
    segments.create(2048)
    assert (segments.min_offset, segments.end) == (1024, 3072)


def test_outside_the_files_there_is_no_data(tmp_path: Path) -> None:
    segments = Segments(tmp_path, 1024, OpenFiles(OsFileSystem(), 4))
    segments.create(1024)
    segments.write(1500, b"x")
    assert [segments.next_data(position) is not None for position in (0, 1024, 1500, 2048)] == [False, True, True, False]
    assert (segments.read(0, 10), segments.read(2048, 10)) == (b"", b"")
