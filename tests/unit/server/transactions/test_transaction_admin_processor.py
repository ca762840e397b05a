from dataclasses import dataclass

import pytest

from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.codes import AdminRequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.transaction_admin import (
    DecideTransactionRequestHeader,
    ListDecidedTransactionsRequestHeader,
    ListPendingTransactionsRequestHeader,
    ShowTransactionRequestHeader,
)
from rocketmq_broker.remoting.dispatcher import RequestRefused
from tests.unit.server.transaction_broker import OP_TOPIC, STORE_HOST, Producer, TransactionBroker
from tests.unit.transaction.records import pending

COMMIT, ROLLBACK = 8, 12
CODES = {
    ListPendingTransactionsRequestHeader: AdminRequestCode.LIST_PENDING_TRANSACTIONS,
    ShowTransactionRequestHeader: AdminRequestCode.SHOW_TRANSACTION,
    DecideTransactionRequestHeader: AdminRequestCode.DECIDE_TRANSACTION,
    ListDecidedTransactionsRequestHeader: AdminRequestCode.LIST_DECIDED_TRANSACTIONS,
}


@dataclass
class Operator:
    """An operator who sends requests as the operators' tool does."""

    broker: TransactionBroker

    def ask(self, header: CommandHeader) -> TransactionList:
        broker, caller = self.broker, Producer("127.0.0.1:9")
        code = CODES[type(header)]
        frame = broker.dispatcher.handlers[code](caller.connection, _decoded(encode_request(code, header, opaque=7)))
        if frame is None:
            assert caller.answers == [], "answered before it was on disk"
            broker.flush()
            (answer,) = caller.answers
        else:
            answer = _decoded(frame)
        assert (answer.code, answer.opaque) == (ResponseCode.SUCCESS, 7)
        return TransactionList.decode(answer.body)

    def refused(self, header: CommandHeader) -> RequestRefused:
        with pytest.raises(RequestRefused) as caught:
            self.ask(header)
        return caught.value

    def pending(self, **filters: object) -> TransactionList:
        return self.ask(ListPendingTransactionsRequestHeader(**filters))

    def show(self, word: str) -> list[TransactionInfo]:
        return self.ask(ShowTransactionRequestHeader(transaction_id=word, key=word)).transactions

    def decide(self, transaction_id: str, *, commit: bool, reason: str = "the customer called") -> TransactionInfo:
        header = DecideTransactionRequestHeader(transaction_id=transaction_id, commit=commit, reason=reason)
        (info,) = self.ask(header).transactions
        return info

    def decided(self) -> list[TransactionInfo]:
        return self.ask(ListDecidedTransactionsRequestHeader()).transactions


def _decoded(frame: bytes) -> RemotingCommand:
    (command,) = FrameDecoder().feed(frame)
    return command


@pytest.fixture
def producer() -> Producer:
    return Producer()


@pytest.fixture
def operator(broker: TransactionBroker) -> Operator:
    return Operator(broker)


def test_a_pending_transaction_is_listed_with_all_that_an_operator_asks_for(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    broker.online(producer)
    half = broker.send(producer, "A", b"an order", KEYS="order-1 customer-9")
    broker.tick(1000)
    broker.tick(500)

    listed = operator.pending()

    assert (listed.total, listed.next_after) == (1, None)
    (info,) = listed.transactions
    assert (info.state, info.transaction_id, info.keys, info.tags) == ("pending", "A", ["order-1", "customer-9"], "created")
    assert (info.half_offset, info.topic, info.queue_id, info.body_size) == (half.commit_log_offset, "orders", 2, 8)
    assert (info.producer_group, info.is_producer_online) == ("order_service", True)
    assert (info.age_ms, info.checks, info.check_max, info.next_check_in_ms) == (1500, 1, 3, 1500)


def test_a_producer_that_left_is_shown_as_offline(broker: TransactionBroker, producer: Producer, operator: Operator) -> None:
    broker.send(producer, "A")

    assert [info.is_producer_online for info in operator.pending().transactions] == [False]


def test_a_pending_transaction_tells_for_how_long_its_answer_is_owed(operator: Operator, producer: Producer) -> None:
    broker = operator.broker
    broker.online(producer)
    broker.send(producer, "A")
    broker.tick(1000)
    broker.now_ms += 700

    (owed,) = operator.pending().transactions
    assert (owed.checks, owed.answer_owed_ms) == (1, 700)
    broker.end(producer, producer.checks[0], 0, from_check=True, is_oneway=True)
    (answered,) = operator.pending().transactions
    assert (answered.checks, answered.answer_owed_ms) == (1, None)


def test_pages_of_pending_transactions_begin_with_the_oldest_and_miss_none(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    for number in range(5):
        broker.send(producer, f"T{number}")
    seen, after = [], -1
    while True:
        page = operator.pending(after=after, max_count=2)
        assert page.total == 5
        seen += [info.transaction_id for info in page.transactions]
        if page.next_after is None:
            break
        after = page.next_after

    assert seen == ["T0", "T1", "T2", "T3", "T4"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"older_than_ms": 100}, ["old"]),
        ({"topic": "orders"}, ["old", "young"]),
        ({"topic": "others"}, []),
        ({"producer_group": "order_service"}, ["old", "young"]),
        ({"producer_group": "other_service"}, []),
    ],
)
def test_only_what_matches_is_listed(
    broker: TransactionBroker, producer: Producer, operator: Operator, filters: dict[str, object], expected: list[str]
) -> None:
    broker.send(producer, "old")
    broker.now_ms += 100
    broker.send(producer, "young")

    listed = operator.pending(**filters)

    assert [info.transaction_id for info in listed.transactions] == expected
    assert listed.total == len(expected)


def test_listing_reads_the_half_messages_of_one_page_only(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    for number in range(50):
        broker.send(producer, f"T{number}")
    before = broker.files.reads

    operator.pending(max_count=3)

    assert broker.files.reads - before <= 6


def test_a_commit_by_hand_delivers_once_and_keeps_its_reason_through_a_restart(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    half = broker.send(producer, "A")

    info = operator.decide("A", commit=True, reason="paid: Überweisung 17 ist da")

    assert info.state == "committed"
    assert broker.delivered() == ["A"]
    (op,) = broker.records(OP_TOPIC)
    assert (op.body, op.get_property("TAGS")) == (b"%d" % half.queue_offset, "d"), "Apache reads no reason"
    again = Operator(broker.restarted())
    (shown,) = again.show("A")
    assert (shown.state, shown.reason, shown.decided_ms) == ("committed", "paid: Überweisung 17 ist da", broker.now_ms)
    assert [(info.transaction_id, info.state, info.reason) for info in again.decided()] == [
        ("A", "committed", "paid: Überweisung 17 ist da")
    ]
    assert again.broker.delivered() == ["A"]
    assert again.pending().total == 0


def test_a_rollback_by_hand_leaves_the_message_invisible(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    half = broker.send(producer, "A")

    operator.ask(DecideTransactionRequestHeader(half_offset=half.commit_log_offset, commit=False, reason="a test order"))

    assert broker.delivered() == []
    assert [(info.state, info.reason) for info in operator.show("A")] == [("rolled back", "a test order")]


def test_a_decision_that_names_a_transaction_by_its_key_is_refused_and_told_the_id(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    broker.send(producer, "A", KEYS="order-1")

    refusal = operator.refused(DecideTransactionRequestHeader(transaction_id="order-1", commit=True, reason="it is paid"))

    assert "order-1 is a key" in (refusal.remark or "")
    assert (refusal.remark or "").endswith("use a transaction id instead: A")
    assert [info.state for info in operator.show("A")] == ["pending"]


@pytest.mark.parametrize("by_producer", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("by_hand", [True, False])
def test_a_decision_by_hand_after_the_producers_is_refused(
    broker: TransactionBroker, producer: Producer, operator: Operator, by_producer: int, by_hand: bool
) -> None:
    broker.end(producer, broker.send(producer, "A"), by_producer)
    delivered = broker.delivered()

    refusal = operator.refused(DecideTransactionRequestHeader(transaction_id="A", commit=by_hand, reason="too late"))

    state = "committed" if by_producer == COMMIT else "rolled back"
    assert refusal.remark == f"the transaction with id A is {state} already; its first decision counts"
    assert broker.delivered() == delivered
    assert operator.decided() == []


def test_a_producers_decision_after_one_by_hand_is_refused(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    half = broker.send(producer, "A")
    operator.decide("A", commit=False)

    with pytest.raises(RequestRefused, match="rolled back already"):
        broker.end(producer, half, COMMIT)
    assert broker.delivered() == []


def test_of_two_transactions_with_one_id_the_operator_must_name_one(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    offsets = []
    for _ in range(2):
        offsets.append(broker.send(producer, "A").commit_log_offset)
        broker.now_ms += 1

    refusal = operator.refused(DecideTransactionRequestHeader(transaction_id="A", commit=True, reason="paid"))

    assert f"{offsets[0]}, {offsets[1]}" in refusal.remark
    operator.ask(DecideTransactionRequestHeader(half_offset=offsets[1], commit=True, reason="paid"))
    assert [(info.half_offset, info.state) for info in operator.show("A")] == [
        (offsets[0], "pending"),
        (offsets[1], "committed"),
    ]


def test_a_transaction_nobody_knows_is_not_found(operator: Operator) -> None:
    by_id = operator.refused(DecideTransactionRequestHeader(transaction_id="A", commit=True, reason="paid"))
    by_offset = operator.refused(DecideTransactionRequestHeader(half_offset=0, commit=True, reason="paid"))

    assert (by_id.code, by_offset.code) == (ResponseCode.QUERY_NOT_FOUND, ResponseCode.QUERY_NOT_FOUND)
    assert operator.show("A") == []


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001, "two\nlines", "a\x01b"])
def test_a_reason_that_cannot_be_kept_decides_nothing(
    broker: TransactionBroker, producer: Producer, operator: Operator, reason: str
) -> None:
    broker.send(producer, "A")

    refusal = operator.refused(DecideTransactionRequestHeader(transaction_id="A", commit=True, reason=reason))
    broker.flush()

    assert refusal.code is ResponseCode.MESSAGE_ILLEGAL
    assert broker.delivered() == []
    assert operator.pending().total == 1


def test_an_unreadable_half_message_is_listed_and_can_be_rolled_back_only(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    half = broker.send(producer, "A")
    transaction = pending(broker.messages.table, half.commit_log_offset)
    transaction.stored_queue_offset += 7  # the record there says otherwise

    (info,) = operator.pending().transactions
    assert info.problem is not None
    assert info.transaction_id is None
    refusal = operator.refused(DecideTransactionRequestHeader(half_offset=half.commit_log_offset, commit=True, reason="paid"))
    assert "can only be rolled back" in refusal.remark
    operator.ask(DecideTransactionRequestHeader(half_offset=half.commit_log_offset, commit=False, reason="damaged"))
    assert operator.pending().total == 0


def test_a_transaction_is_found_by_the_key_of_its_message(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    broker.send(producer, "A", KEYS="order-1")
    broker.send(producer, "B", KEYS="order-2")

    assert [info.transaction_id for info in operator.show("order-2")] == ["B"]


def test_discarded_and_resumed_are_two_transactions_in_one_story(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    broker.online(producer)
    half = broker.send(producer, "A")
    for _ in range(5):
        broker.tick(2000)
    assert [info.state for info in operator.show("A")] == ["discarded"]
    (discarded,) = operator.show("A")
    broker.resume(producer, str(discarded.message_id))
    first, resumed = operator.show("A")

    assert (first.state, first.half_offset, first.checks) == ("discarded", half.commit_log_offset, 3)
    assert (resumed.state, resumed.checks) == ("pending", 0)
    assert offset_message_id(STORE_HOST, int(resumed.resumed_from or -1)) == discarded.message_id
    operator.decide("A", commit=True)
    assert [info.state for info in operator.show("A")] == ["discarded", "committed"]
    assert broker.delivered() == ["A"]


def test_a_moved_half_message_is_named_by_its_first_offset_and_keeps_its_reason(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    half = broker.send(producer, "stays")
    for number in range(12):
        broker.end(producer, broker.send(producer, f"T{number}"), ROLLBACK)
        broker.tick()
    transaction = pending(broker.messages.table, half.commit_log_offset)
    assert transaction.stored_at > half.commit_log_offset, "nothing was moved"
    assert [(info.half_offset, info.state) for info in operator.show("stays")] == [(half.commit_log_offset, "pending")]

    operator.decide("stays", commit=True, reason="paid")

    (info,) = operator.show("stays")
    assert (info.half_offset, info.state, info.reason) == (half.commit_log_offset, "committed", "paid")
    assert broker.delivered() == ["stays"]


def test_without_an_index_only_half_offsets_find_a_transaction(producer: Producer) -> None:
    broker = TransactionBroker(is_index_enabled=False)
    operator = Operator(broker)
    half = broker.send(producer, "A")

    assert "messageIndexEnable" in operator.refused(ShowTransactionRequestHeader(transaction_id="A")).remark
    assert "messageIndexEnable" in operator.refused(ListDecidedTransactionsRequestHeader()).remark
    (info,) = operator.ask(ShowTransactionRequestHeader(half_offset=half.commit_log_offset)).transactions
    assert info.transaction_id == "A"
    operator.ask(DecideTransactionRequestHeader(half_offset=half.commit_log_offset, commit=True, reason="paid"))
    assert broker.delivered() == ["A"]


def test_a_decision_by_hand_that_does_not_reach_the_disk_leaves_the_transaction_pending(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    broker.send(producer, "A")
    broker.disk.is_full = True
    with pytest.raises(ValueError, match="unpack"):  # no answer came
        operator.decide("A", commit=True)
    broker.disk.is_full = False

    assert broker.delivered() == []
    assert [info.state for info in operator.pending().transactions] == ["pending"]


def test_a_decision_by_an_id_that_many_have_is_refused(broker: TransactionBroker, producer: Producer, operator: Operator) -> None:
    """A decision by transaction id is refused if too many transactions have the id.

    A client may send so many transactions with the same id that the search does not find the right one.
    """
    meant = broker.send(producer, "A")
    for _ in range(64):
        broker.end(producer, broker.send(Producer("127.0.0.1:6666"), "A", b"forged"), ROLLBACK)

    header = DecideTransactionRequestHeader(transaction_id="A", commit=True, reason="it is there")
    assert "use the half offset of the transaction instead" in operator.refused(header).remark
    by_offset = DecideTransactionRequestHeader(half_offset=meant.commit_log_offset, commit=True, reason="it is there")
    operator.ask(by_offset)
    assert broker.delivered() == ["A"]


def test_how_a_transaction_was_decided_is_not_guessed_where_many_have_its_id(
    broker: TransactionBroker, producer: Producer, operator: Operator
) -> None:
    half = broker.send(producer, "A")
    broker.end(producer, half, COMMIT)
    (info,) = operator.show("A")
    assert (info.state, info.problem) == ("committed", None)
    broker.messages.table.ended._newer.clear()  # it was long ago
    for _ in range(64):
        broker.end(producer, broker.send(Producer("127.0.0.1:6666"), "A", b"forged"), COMMIT)

    (info,) = operator.ask(ShowTransactionRequestHeader(half_offset=half.commit_log_offset)).transactions

    assert info.state == "decided"
    assert "too many messages" in (info.problem or "")
