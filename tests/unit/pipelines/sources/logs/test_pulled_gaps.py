"""Tests that messages that a broker has lost are found in the results of pulls."""

from dataclasses import replace

from pipelines.sources.logs.pulled_log_source import found_in
from pipelines.sources.logs.queue_ranges import QueueRange
from rocketmq_broker.message.record import Record
from rocketmq_commitlog.commit_log import Damage, LogRecord
from tests.unit.pipelines.log_writer import HOST

PART = QueueRange("orders", 0, 5, 9)


def page(*queue_offsets: int) -> list[Record]:
    """Returns messages of 100 bytes at these queue offsets. The offset is also the store timestamp in milliseconds."""
    return [
        Record(100, 0, 0, 0, offset, offset * 100, 0, 0, HOST, offset, HOST, 0, 0, b"", b"orders", b"")
        for offset in queue_offsets
    ]


def gaps(*pages: list[Record]) -> list[tuple[int, int, int | None]]:
    found = list(found_in(PART, pages))
    assert sum(isinstance(one, LogRecord) for one in found) == sum(map(len, pages))
    return [(one.commit_log_offset, one.size, one.whole_again_ms) for one in found if isinstance(one, Damage)]


def test_queue_offsets_that_follow_one_another_have_no_gap() -> None:
    assert gaps(page(5, 6), [], page(7, 8)) == []


def test_queue_offsets_that_are_left_out_are_a_gap() -> None:
    assert gaps(page(5), page(8)) == [(600, 200, 8)]
    assert gaps(page(6, 7, 8)) == [(0, 600, 6)]
    assert gaps(page(5, 6)) == [(700, 0, None)]
    assert gaps() == [(0, 0, None)]


def test_a_message_whose_properties_were_never_written_is_damage() -> None:
    (message,) = page(5)
    torn = replace(message, properties=b"KEYS\x01order-1\x02" + bytes(9))
    assert list(found_in(QueueRange("orders", 0, 5, 6), [[torn]])) == [Damage(500, 100, ("order-1",))]
