"""Tests that the wire watch reports violated promises. Each case of handwritten frames violates exactly one."""

import pytest

from lab.simulation.judges.violation import Promise, Violation
from lab.simulation.judges.wire_watch import WireWatch
from rocketmq_broker.message import properties, sysflag, topics
from rocketmq_broker.message.record import host_bytes
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import encode_request, encode_response
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.pull import (
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rocketmq_broker.protocol.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_commitlog.commit_log import record_at
from tests.stored_records import encoded

BROKER, CLIENT = "broker-a", "orders-1"
HOST = host_bytes("127.0.0.1", 1)


class Wire:
    """A client and a broker whose frames a watch observes."""

    def __init__(self) -> None:
        self.handled: set[tuple[str, str, str]] = set()
        self.local: dict[str, str] = {}
        self.watch = WireWatch(lambda *asked: asked in self.handled, self.local.get)
        self.found: list[Violation] = []
        self.opaque = 0

    @property
    def broken(self) -> list[Promise]:
        return [Promise(one.promise) for one in self.found]

    def ask(self, code: RequestCode, header: CommandHeader) -> bytes:
        self.opaque += 1
        frame = encode_request(code, header, opaque=self.opaque)
        self.found += self.watch.observe(CLIENT, BROKER, frame)
        return frame

    def answer(self, request: bytes, code: ResponseCode, header: CommandHeader | None = None, body: bytes = b"") -> None:
        (command,) = FrameDecoder().feed(request)
        self.found += self.watch.observe(BROKER, CLIENT, encode_response(command, code, header=header, body=body))

    def send(self, name: str, *, is_half: bool = True, code: ResponseCode = ResponseCode.SUCCESS, topic: str = "orders") -> None:
        named = {properties.UNIQUE_KEY: f"T-{name}", properties.KEYS: name}
        encoded = properties.encode(named | ({properties.TRANSACTION_PREPARED: "true"} if is_half else {})).decode()
        header = SendMessageRequestHeaderV2(
            producer_group="g", topic=topic, default_topic="TBW102", default_topic_queue_nums=4, queue_id=0, sys_flag=0,
            born_timestamp=1, flag=0, properties=encoded,
        )  # fmt: skip
        place = SendMessageResponseHeader(msg_id="0" * 32, queue_id=0, queue_offset=0)
        self.answer(self.ask(RequestCode.SEND_MESSAGE_V2, header), code, place)

    def decide(self, name: str, decision: int) -> None:
        header = EndTransactionRequestHeader(
            producer_group="order_service", tran_state_table_offset=0, commit_log_offset=0, commit_or_rollback=decision,
            msg_id=f"T-{name}", transaction_id=f"T-{name}",
        )  # fmt: skip
        self.ask(RequestCode.END_TRANSACTION, header)

    def pull(self, *names: str, begin: int = 0, commit: int | None = None) -> None:
        header = PullMessageRequestHeader(
            consumer_group="credit_service", topic="orders", queue_id=0, queue_offset=begin, max_msg_nums=32,
            sys_flag=0 if commit is None else 1, commit_offset=commit or 0, suspend_timeout_millis=0, subscription="*",
            sub_version=0,
        )  # fmt: skip
        asked = self.ask(RequestCode.PULL_MESSAGE, header)
        end = begin + len(names)
        told = PullMessageResponseHeader(suggest_which_broker_id=0, next_begin_offset=end, min_offset=0, max_offset=end)
        code = ResponseCode.SUCCESS if names else ResponseCode.PULL_NOT_FOUND
        self.answer(asked, code, told, b"".join(record(name, begin + at) for at, name in enumerate(names)))

    def say_handled_up_to(self, offset: int) -> None:
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group="credit_service", topic="orders", queue_id=0, commit_offset=offset
        )
        self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    def give_back(self, name: str, code: ResponseCode) -> None:
        header = ConsumerSendMsgBackRequestHeader(offset=0, group="credit_service", delay_level=3, origin_msg_id=f"T-{name}")
        self.answer(self.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header), code)

    def credit(self, name: str) -> None:
        self.handled.add(("credit_service", "orders", name))


def record(name: str, queue_offset: int = 0, topic: str = "orders", commit_log_offset: int = 0) -> bytes:
    named = {properties.UNIQUE_KEY: f"T-{name}", properties.KEYS: name}
    return encoded(topic, b"{}", named, queue_offset=queue_offset, commit_log_offset=commit_log_offset)


COMMIT, ROLLBACK, UNKNOWN = sysflag.TRANSACTION_COMMIT_TYPE, sysflag.TRANSACTION_ROLLBACK_TYPE, 0


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_transaction_that_goes_right_breaks_no_promise(wire: Wire) -> None:
    wire.send("a")
    wire.local["T-a"] = "COMMITTED"
    wire.decide("a", UNKNOWN)
    wire.decide("a", COMMIT)
    wire.decide("a", COMMIT)
    wire.pull("a")
    wire.credit("a")
    wire.say_handled_up_to(1)
    wire.pull(begin=1, commit=1)
    assert wire.found == []


def test_a_transaction_has_one_outcome(wire: Wire) -> None:
    wire.local["T-a"] = "ROLLED_BACK"
    wire.decide("a", ROLLBACK)
    wire.local["T-a"] = "COMMITTED"
    wire.decide("a", COMMIT)
    assert wire.broken == [Promise.ONE_OUTCOME]
    assert wire.found[0].keys == ("T-a",)


@pytest.mark.parametrize(
    ("local", "decision"), [("ROLLED_BACK", COMMIT), (None, COMMIT), ("PENDING", COMMIT), ("COMMITTED", ROLLBACK)]
)
def test_the_broker_is_told_what_the_order_database_says(wire: Wire, local: str | None, decision: int) -> None:
    if local is not None:
        wire.local["T-a"] = local
    wire.decide("a", decision)
    assert wire.broken == [Promise.ONE_OUTCOME]


def test_a_rollback_needs_no_row_in_the_order_database(wire: Wire) -> None:
    wire.decide("a", ROLLBACK)
    assert wire.found == []


@pytest.mark.parametrize("decision", [UNKNOWN, ROLLBACK])
def test_a_message_is_visible_only_after_its_commit(wire: Wire, decision: int) -> None:
    wire.send("a")
    wire.decide("a", decision)
    wire.pull("a")
    wire.pull("a")
    assert wire.broken == [Promise.VISIBLE_AFTER_COMMIT]
    assert wire.found[0].keys == ("T-a", "a")


def test_a_plain_message_needs_no_commit(wire: Wire) -> None:
    wire.send("a", is_half=False)
    wire.pull("a")
    assert wire.found == []


def test_an_offset_past_a_message_that_was_not_handled_is_found(wire: Wire) -> None:
    wire.pull("a", "b", "c")
    wire.credit("a")
    wire.say_handled_up_to(1)
    assert wire.found == []
    wire.credit("c")
    wire.say_handled_up_to(3)
    wire.say_handled_up_to(3)
    assert wire.broken == [Promise.OFFSET_BEHIND_WORK]
    assert wire.found[0].keys == ("T-b", "b")


def test_an_offset_that_a_pull_names_counts_as_well(wire: Wire) -> None:
    wire.pull("a")
    wire.pull(begin=1, commit=1)
    assert wire.broken == [Promise.OFFSET_BEHIND_WORK]


def test_an_offset_past_the_end_is_found(wire: Wire) -> None:
    wire.pull("a")
    wire.credit("a")
    wire.say_handled_up_to(2)
    assert wire.broken == [Promise.OFFSET_BEHIND_WORK]


@pytest.mark.parametrize(
    ("code", "broken"), [(ResponseCode.SUCCESS, []), (ResponseCode.SYSTEM_ERROR, [Promise.OFFSET_BEHIND_WORK])]
)
def test_a_message_that_the_broker_took_back_counts_as_handled(wire: Wire, code: ResponseCode, broken: list[Promise]) -> None:
    wire.pull("a")
    wire.give_back("a", code)
    wire.say_handled_up_to(1)
    assert wire.broken == broken


@pytest.mark.parametrize(
    ("group", "code", "broken"),
    [
        ("credit_service", ResponseCode.SUCCESS, []),
        ("credit_service", ResponseCode.SYSTEM_ERROR, [Promise.OFFSET_BEHIND_WORK]),
        ("inventory_service", ResponseCode.SUCCESS, [Promise.OFFSET_BEHIND_WORK]),
    ],
)
def test_a_message_that_the_broker_took_into_the_retry_topic_of_the_group_counts_as_handled(
    wire: Wire, group: str, code: ResponseCode, broken: list[Promise]
) -> None:
    wire.pull("a")
    wire.send("a", is_half=False, code=code, topic=topics.retry_topic(group))
    wire.say_handled_up_to(1)
    assert wire.broken == broken


def test_a_message_that_was_acknowledged_is_in_the_log_after_a_crash(wire: Wire) -> None:
    wire.send("a")
    wire.send("b", is_half=False)
    wire.send("c", code=ResponseCode.FLUSH_DISK_TIMEOUT)
    kept = record_at(record("a", topic=topics.HALF_TOPIC), 0, 0)
    assert kept is not None
    lost = wire.watch.after_recovery(BROKER, [kept])
    assert [(one.promise, one.keys) for one in lost] == [(Promise.ACKNOWLEDGED_IS_KEPT, ("T-b", "b"))]
    assert wire.watch.after_recovery(BROKER, [kept]) == []
    assert wire.watch.after_recovery("broker-b", []) == []


def test_bytes_that_are_no_frame_say_nothing(wire: Wire) -> None:
    assert wire.watch.observe(CLIENT, BROKER, b"\0\0\0\x08\0\0\0\xffxxxx") == []
    assert wire.watch.observe(CLIENT, BROKER, b"") == []
