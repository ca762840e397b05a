"""Tests how dead letters are found and handled. Brokers are simulated in memory, without sockets."""

import zlib
from typing import Any, cast

import pytest

from rocketmq_broker.admin.dead_letters.content import content_of
from rocketmq_broker.admin.dead_letters.finding import dead_letters_of, find_dead_letters, groups_with_dead_letters
from rocketmq_broker.admin.dead_letters.printing import print_contents, print_groups, print_letters
from rocketmq_broker.admin.dead_letters.treating import dismiss, retry, single_match
from rocketmq_broker.admin.errors import NotSupported, Refused
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import sysflag
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, host_bytes
from rocketmq_broker.protocol.bodies.parked_admin import MarkInfo, ParkedCounts
from rocketmq_broker.protocol.headers.parked_admin import (
    DismissDeadLetterRequestHeader,
    ListMarksRequestHeader,
    RetryDeadLetterRequestHeader,
)
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2
from tests import stored_records
from tests.unit.admin.stored_broker import StoredBroker, session

DLQ, RETRY_TOPIC = "%DLQ%credits", "%RETRY%credits"
OWN = {"UNIQ_KEY": "A1", "KEYS": "order-1", "RETRY_TOPIC": "orders", "TRAN_MSG": "true"}


def stored(queue_offset: int, *, topic: str = DLQ, offset: int | None = None, port: int = 1, **more: Any) -> Record:
    """Returns a record. `more` are its body, its sys_flag, and properties, of which an empty one is left out."""
    fields = {name: more.pop(name) for name in ("body", "sys_flag") if name in more}
    host = host_bytes("127.0.0.1", port)
    return stored_records.stored(
        topic, properties={name: value for name, value in {**OWN, **more}.items() if value}, queue_offset=queue_offset, flag=3,
        commit_log_offset=queue_offset * 100 if offset is None else offset, born_timestamp=7, born_host=host,
        store_timestamp=1000 + queue_offset, store_host=host, reconsume_times=16, **fields,
    )  # fmt: skip


class Broker(StoredBroker):
    """A broker with records and marks, and the requests that it received."""

    def __init__(self, *records: Record, address: str = "127.0.0.1:1") -> None:
        super().__init__(*records, address=address)
        self.marked: dict[int, MarkInfo] = {}
        self.asked: list[ListMarksRequestHeader] = []
        self.retried: list[RetryDeadLetterRequestHeader] = []
        self.dismissed: list[DismissDeadLetterRequestHeader] = []

    async def topics(self) -> dict[str, int]:
        return {"orders": 4, DLQ: 1, RETRY_TOPIC: 1, **{record.topic.decode(): 1 for record in self.records}}

    async def count_parked(self) -> ParkedCounts:
        return ParkedCounts(dead_letters={"credits": len(self.of_topic(DLQ)) - len(self.marked)})

    async def marks(self, header: ListMarksRequestHeader) -> list[MarkInfo]:
        self.asked.append(header)
        wanted = range(header.queue_offset, header.queue_offset + header.count)
        return [mark for offset, mark in self.marked.items() if offset in wanted]

    async def retry(self, header: RetryDeadLetterRequestHeader) -> MarkInfo:
        self.retried.append(header)
        return MarkInfo(0, "retried", 5, "10.0.0.9:1", header.reason, 1)

    async def dismiss(self, header: DismissDeadLetterRequestHeader) -> MarkInfo:
        self.dismissed.append(header)
        return MarkInfo(0, "dismissed", 5, "10.0.0.9:1", header.reason)


class ApachesBroker(Broker):
    """A broker that, like Apache's, does not support this project's own requests."""

    def __init__(self, *records: Record) -> None:
        super().__init__(*records)
        self.sent: list[tuple[SendMessageRequestHeaderV2, bytes]] = []

    async def _not_supported(self, *_: object) -> Any:
        raise NotSupported("the broker does not support this request")

    count_parked = marks = retry = dismiss = _not_supported

    async def send(self, header: SendMessageRequestHeaderV2, body: bytes) -> None:
        self.sent.append((header, body))


def mark(queue_offset: int, treatment: str = "retried", **more: Any) -> MarkInfo:
    return MarkInfo(queue_offset, treatment, 5, "10.0.0.9:1", **more)


async def test_groups_are_those_with_dead_letters_and_tell_how_many_nobody_has_treated() -> None:
    broker = Broker(stored(3), stored(4), stored(0, topic="%DLQ%mails"))
    broker.marked[3] = mark(3)

    groups = await groups_with_dead_letters(cast(Any, broker))

    assert [(group.consumer_group, group.untreated, group.total, group.newest_ms) for group in groups] == [
        ("credits", 1, 2, 1004),
        ("mails", 0, 1, 1000),
    ]


async def test_apaches_broker_does_not_know_what_nobody_has_treated() -> None:
    (group,) = await groups_with_dead_letters(cast(Any, ApachesBroker(stored(3))))

    assert (group.untreated, group.total) == (None, 1)


async def test_the_marks_of_a_page_are_asked_for_at_once() -> None:
    broker = Broker(*(stored(number) for number in range(64)))
    broker.marked[5] = mark(5, reason="known")

    found = [one async for one in dead_letters_of(cast(Any, broker), "credits")]

    assert [one.letter.queue_offset for one in found if one.letter.treatment is not None] == [5]
    assert len(broker.asked) == 2


async def test_the_marks_of_letters_that_lie_far_apart_are_asked_for_one_by_one() -> None:
    broker = Broker(stored(1), stored(5_000_000))
    broker.marked[5_000_000] = mark(5_000_000)

    found = await find_dead_letters(session(broker), "order-1", None)

    assert [one.letter.treatment is None for one in found] == [True, False]
    assert max(header.count for header in broker.asked) == 1


async def test_a_letter_is_found_by_its_message_id_its_key_and_its_place() -> None:
    record = stored(3)
    for word in ("A1", "order-1", offset_message_id(record.store_host, record.commit_log_offset)):
        (found,) = await find_dead_letters(session(Broker(record)), word, None)
        assert found.letter.commit_log_offset == 300


async def test_a_letter_of_another_group_is_not_meant() -> None:
    record = stored(3)
    for word in ("A1", offset_message_id(record.store_host, record.commit_log_offset)):
        with pytest.raises(Refused, match=f"dead letter not found: {word} in the consumer group mails"):
            await find_dead_letters(session(Broker(record)), word, "mails")


async def test_a_place_names_one_of_several_brokers() -> None:
    here, there = Broker(stored(3, KEYS="x", UNIQ_KEY="x")), Broker(stored(3, port=2, KEYS="y"), address="127.0.0.1:2")

    (found,) = await find_dead_letters(session(here, there), offset_message_id(host_bytes("127.0.0.1", 2), 300), None)

    assert found.letter.keys == ["y"]


async def test_a_message_that_is_no_dead_letter_is_not_found_by_its_place() -> None:
    record = stored(3, topic="orders")

    with pytest.raises(Refused, match="dead letter not found"):
        await find_dead_letters(session(Broker(record)), offset_message_id(record.store_host, 300), None)


async def test_of_several_letters_with_one_key_the_untreated_one_is_meant() -> None:
    broker = Broker(stored(1), stored(2))
    broker.marked[1] = mark(1)

    assert single_match(await find_dead_letters(session(broker), "order-1", None), "order-1").letter.queue_offset == 2


async def test_two_untreated_letters_with_one_key_are_for_the_operator_to_tell_apart() -> None:
    broker = Broker(stored(1), stored(2))
    found = await find_dead_letters(session(broker), "order-1", None)

    with pytest.raises(Refused, match="2 dead letters match order-1: choose one by its offset message id") as caught:
        single_match(found, "order-1")
    assert all(one.letter.offset_message_id in str(caught.value) for one in found)


async def test_our_broker_is_told_which_letter_why_and_whether_again() -> None:
    broker = Broker(stored(3))
    (found,) = await find_dead_letters(session(broker), "A1", None)

    treatment = await retry(found, again=True, reason="it is back")
    await dismiss(found, reason="known")

    assert (treatment.treatment, treatment.reason, treatment.retries) == ("retried", "it is back", 1)
    assert broker.retried == [RetryDeadLetterRequestHeader(300, True, "it is back")]
    assert broker.dismissed == [DismissDeadLetterRequestHeader(300, "known")]


async def test_at_apaches_broker_the_tool_sends_the_message_to_the_groups_retry_topic() -> None:
    broker = ApachesBroker(stored(3, body=b"zipped", sys_flag=sysflag.TRANSACTION_COMMIT_TYPE | sysflag.COMPRESSED))
    (found,) = await find_dead_letters(session(broker), "A1", None)

    await retry(found, again=False, reason="")

    ((header, body),) = broker.sent
    assert (header.topic, header.queue_id, header.reconsume_times, body) == (RETRY_TOPIC, 0, 0, b"zipped")
    assert (header.sys_flag, header.flag, header.born_timestamp) == (sysflag.COMPRESSED, 3, 7)
    expected = {**OWN, "DEAD_LETTER_RETRIES": "1"}
    del expected["TRAN_MSG"]
    assert props.decode(header.properties.encode()) == expected
    with pytest.raises(NotSupported):
        await dismiss(found, reason="known")


async def test_at_apaches_broker_a_retry_is_seen_in_the_retry_topic_and_not_repeated_by_mistake() -> None:
    broker = ApachesBroker(stored(3), stored(0, topic=RETRY_TOPIC, offset=900, DEAD_LETTER_RETRIES="1"))
    (found,) = await find_dead_letters(session(broker), "A1", None)
    assert found.letter.treatment is not None
    assert (found.letter.treatment.treatment, found.letter.treatment.retries) == ("retried", 1)

    with pytest.raises(Refused, match="was already retried: use --again"):
        await retry(found, again=False, reason="")
    assert (await retry(found, again=True, reason="")).retries == 2
    assert len(broker.sent) == 1


async def test_an_earlier_redelivery_is_no_retry() -> None:
    broker = ApachesBroker(
        stored(3), stored(0, topic=RETRY_TOPIC, offset=100), stored(1, topic=RETRY_TOPIC, offset=200, DEAD_LETTER_RETRIES="1")
    )

    (found,) = await find_dead_letters(session(broker), "A1", None)

    assert found.letter.treatment is None


async def test_a_letter_without_its_first_topic_is_not_sent_to_apaches_retry_topic() -> None:
    broker = ApachesBroker(stored(3, RETRY_TOPIC=""))
    (found,) = await find_dead_letters(session(broker), "A1", None)

    with pytest.raises(Refused, match="RETRY_TOPIC"):
        await retry(found, again=False, reason="")
    assert broker.sent == []


@pytest.mark.parametrize(
    ("body", "sys_flag", "text", "problem"),
    [
        (b"order", 0, "order", None),
        (b"\xff\x00", 0, None, None),
        (zlib.compress(b"order"), sysflag.COMPRESSED, "order", None),
        (b"torn", sysflag.COMPRESSED, "torn", "cannot be decompressed"),
    ],
)
async def test_the_body_is_shown_as_text_where_it_is_text(
    body: bytes, sys_flag: int, text: str | None, problem: str | None
) -> None:
    broker = Broker(stored(3, body=body, sys_flag=sys_flag))
    (found,) = await find_dead_letters(session(broker), "A1", None)

    content = await content_of(found)

    assert content.body == text
    assert (problem or "") in (content.problem or "")


async def test_nothing_that_a_producer_wrote_reaches_the_terminal_as_a_control_sequence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    broker = Broker(stored(3, body=b"one\n\x1b[2Jtwo", KEYS="\x1b[2Jorder-1", customer="\x1b]0;ada\x07"))
    broker.marked[3] = mark(3, "dismissed", reason="a test order")
    found = [one async for one in dead_letters_of(cast(Any, broker), "credits")]

    print_letters([("127.0.0.1:1", one.letter) for one in found], 10_000)
    print_contents([("127.0.0.1:1", await content_of(one)) for one in found])
    print_groups([("127.0.0.1:1", group) for group in await groups_with_dead_letters(cast(Any, broker))], 10_000)

    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "dismissed: a test order" in said
    assert "property customer" in said
