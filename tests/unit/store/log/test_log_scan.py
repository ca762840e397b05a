"""Tests the search for the next record after damage: client data in a body costs at most its length in reads."""

from pathlib import Path

from rocketmq_broker.message.record import HEAD_V4, MESSAGE_MAGIC, host_bytes
from rocketmq_broker.store.files import OpenFiles, OsFileSystem
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.log_scan import LogScan
from rocketmq_broker.store.log.segments import Segments

HOST = host_bytes("127.0.0.1", 10911)
HEADS = 2_000


class CountedFiles(OsFileSystem):
    """Files in memory that count the bytes read."""

    bytes_read = 0

    def read(self, file: int, length: int, offset: int) -> bytes:
        self.bytes_read += length
        return super().read(file, length, offset)


def test_heads_in_the_body_of_a_damaged_record_do_not_have_it_read_again_for_each(tmp_path: Path) -> None:
    files = CountedFiles()
    segments = Segments(tmp_path, 1 << 20, OpenFiles(files, 4))
    segments.create(0)
    head = HEAD_V4.pack(HEADS * HEAD_V4.size, MESSAGE_MAGIC, 1, 0, 0, 0, 0, 0, 1, HOST, 1, HOST, 0, 0, 10)
    segments.write(0, b"\xee" * 8 + head * HEADS)
    scan = LogScan(CommitLog(segments), 0, lambda offset, record, is_inside: True)
    assert list(scan.found()) == []
    assert files.bytes_read < 10 * segments.segment_size
