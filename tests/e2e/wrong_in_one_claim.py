"""Provides more wrong brokers for the tester of tutorials/build_your_own.

`python -m tests.e2e.wrong_in_one_claim NAME -c FILE` runs the broker NAME. Each broker violates one claim of one
stage, and perhaps claims of later stages. A failure at that claim shows that the tester checks the claim.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tutorials.build_your_own.solution import __main__ as process
from tutorials.build_your_own.solution import check_back, record, requests, transactions
from tutorials.build_your_own.solution.check_back import CheckBack
from tutorials.build_your_own.solution.commit_log import CommitLog
from tutorials.build_your_own.solution.consume_queue import ConsumeQueue
from tutorials.build_your_own.solution.frames import Command
from tutorials.build_your_own.solution.message_store import MessageStore
from tutorials.build_your_own.solution.record import Message, Record
from tutorials.build_your_own.solution.requests import Answer, Client, Requests
from tutorials.build_your_own.solution.transactions import Pending, Refused, Transactions


@dataclass(frozen=True, slots=True)
class Broken:
    """A wrong broker: the change, the stage that detects the mistake, and the beginning of the violated claim."""

    stage: int
    claim: str
    make: Callable[[], None]


def answers_oneway_requests() -> None:
    Command.is_oneway = property(lambda command: False)  # type: ignore[assignment,method-assign]


def says_another_address() -> None:
    def place_of(stored: Record, queue_id: int) -> Mapping[str, str]:
        return {**right(stored, queue_id), "msgId": "0" * 16 + right(stored, queue_id)["msgId"][16:]}

    right = requests.place_of
    requests.place_of = place_of


def counts_topics_together() -> None:
    def place_of(stored: Record, queue_id: int) -> Mapping[str, str]:
        counted.append(stored.message.queue_id)
        return {**right(stored, queue_id), "queueOffset": str(counted.count(stored.message.queue_id) - 1)}

    counted: list[int] = []
    right = requests.place_of
    requests.place_of = place_of


def change_pull(change: Callable[[Command, Command], Command]) -> None:
    """Changes the responses to pulls."""

    def pull_message(self: Requests, request: Command, client: Client) -> Command:
        return change(request, right(self, request, client))

    right = Requests.pull_message
    Requests.pull_message = pull_message  # type: ignore[method-assign]


def forgets_the_topic_of_a_record() -> None:
    change_pull(lambda request, answer: replace(answer, body=answer.body.replace(b"\x06orders", b"\x06ORDERS")))


def says_success_at_the_end() -> None:
    change_pull(lambda request, answer: replace(answer, code=0) if answer.code == Answer.PULL_NOT_FOUND else answer)


def ignores_the_subscription() -> None:
    requests.is_wanted = lambda unit, subscription: True


def writes_when_it_pleases() -> None:
    def append(self: CommitLog, records: bytes) -> None:
        held.append(records)
        if len(held) > 3:
            right(self, b"".join(held))
            held.clear()

    held: list[bytes] = []
    right = CommitLog.append
    CommitLog.append = append  # type: ignore[method-assign]
    CommitLog.read = lambda self, *place: b""  # type: ignore[method-assign]


def tells_the_time_in_seconds() -> None:
    def encode(stored: Record) -> bytes:
        return right(replace(stored, store_timestamp=stored.store_timestamp // 1000))

    right = record.encode
    record.encode = encode


def writes_no_queues() -> None:
    ConsumeQueue.append = lambda self, unit: self.units.append(unit)  # type: ignore[method-assign]


def shows_half_messages() -> None:
    def append(self: MessageStore, *messages: Message) -> list[Record]:
        stored = right(self, *messages)
        for half in stored:
            if half.message.topic == transactions.HALF_TOPIC:
                right(self, replace(half.message, topic=half.property("REAL_TOPIC"), queue_id=int(half.property("REAL_QID"))))
        return stored

    right = MessageStore.append
    MessageStore.append = append  # type: ignore[method-assign]


def forgets_where_it_was_to_go() -> None:
    right = record.encode_properties
    record.encode_properties = lambda properties: right(properties).replace(b"REAL_QID", b"REAL_QUEUE")


def change_committed(**changes: int) -> Callable[[], None]:
    """Returns a function that changes the messages delivered by COMMIT."""

    def make() -> None:
        right = transactions.committed
        transactions.committed = lambda half: replace(right(half), **changes)  # type: ignore[arg-type]

    return make


def closes_nothing() -> None:
    def append(self: MessageStore, *messages: Message) -> list[Record]:
        return right(self, *[message for message in messages if message.topic != transactions.OP_TOPIC])

    right = MessageStore.append
    MessageStore.append = append  # type: ignore[method-assign]


def tests_one_bit() -> None:
    def end(self: Transactions, decision: int, *place: int | str) -> None:
        right(self, decision & record.COMMITTED, *place)  # type: ignore[arg-type]

    right = Transactions.end
    Transactions.end = end  # type: ignore[method-assign]


def asks_at_once() -> None:
    def look(self: CheckBack) -> None:
        for pending in self._transactions.pending.values():
            pending.due_s = pending.due_s if pending.checks else 0.0
        right(self)

    right = CheckBack.look
    CheckBack.look = look  # type: ignore[method-assign]


def asks_everybody() -> None:
    def look_at(self: CheckBack, pending: Pending) -> None:
        before = pending.checks
        right(self, pending)
        strangers = [online for group, online in self.producers.items() if group != pending.group]
        for send in [send for online in strangers for send in online if pending.checks > before]:
            send(check_back.check_request(pending))

    right = CheckBack._look_at
    CheckBack._look_at = look_at  # type: ignore[method-assign]


def asks_but_once() -> None:
    def look_at(self: CheckBack, pending: Pending) -> None:
        if not pending.checks:
            right(self, pending)

    right = CheckBack._look_at
    CheckBack._look_at = look_at  # type: ignore[method-assign]


def numbers_from_0() -> None:
    right = check_back.as_sent
    check_back.as_sent = lambda half, checks: right(half, checks - 1)


def throws_discarded_messages_away() -> None:
    def discarded(pending: Pending) -> Message:
        return replace(right(pending), properties={})

    right = transactions.discarded
    transactions.discarded = discarded


def counts_unasked() -> None:
    def look_at(self: CheckBack, pending: Pending) -> None:
        is_counted = not self.producers.get(pending.group) and pending.checks < self._policy.check_max
        right(self, pending)
        pending.checks += is_counted

    right = CheckBack._look_at
    CheckBack._look_at = look_at  # type: ignore[method-assign]


def forgets_its_queues() -> None:
    MessageStore.recover = lambda self: [found for found, _ in self.log.recover()]  # type: ignore[method-assign]


def forgets_what_is_pending() -> None:
    Transactions.recover = lambda self, records: None  # type: ignore[method-assign]


def asks_about_what_is_decided() -> None:
    Transactions._close = lambda self, half_queue_offset: None  # type: ignore[method-assign]
    Transactions._complete = lambda self, records: None  # type: ignore[method-assign]


def refuses_politely() -> None:
    """Makes the broker refuse a request, but respond with code 0."""

    def end_transaction(self: Requests, request: Command, client: Client) -> Command:
        try:
            return right(self, request, client)
        except Refused:
            return requests.answer(request, Answer.SUCCESS)

    right = Requests.end_transaction
    Requests.end_transaction = end_transaction  # type: ignore[method-assign]


def believes_any_group() -> None:
    def end(self: Transactions, decision: int, commit_log_offset: int, queue_offset: int, group: str) -> None:
        pending = self.pending.get(commit_log_offset)
        right(self, decision, commit_log_offset, queue_offset, pending.group if pending else group)

    right = Transactions.end
    Transactions.end = end  # type: ignore[method-assign]


def takes_forged_messages() -> None:
    requests.OWN_TOPICS = frozenset()


def closes_before_it_delivers() -> None:
    def append(self: MessageStore, *messages: Message) -> list[Record]:
        return right(self, *reversed(messages))

    right = MessageStore.append
    MessageStore.append = append  # type: ignore[method-assign]


def delivers_again_after_a_crash() -> None:
    Transactions._complete = lambda self, records: None  # type: ignore[method-assign]


_ALL: Sequence[Broken] = (
    Broken(1, "A one-way request (flag 2)", answers_oneway_requests),
    Broken(2, "SEND_MESSAGE is answered with", says_another_address),
    Broken(2, "Another topic counts from 0", counts_topics_together),
    Broken(3, "PULL_MESSAGE returns the records", forgets_the_topic_of_a_record),
    Broken(3, "A pull that finds nothing says why", says_success_at_the_end),
    Broken(4, "When a send is answered", writes_when_it_pleases),
    Broken(4, "STORETIMESTAMP is the time", tells_the_time_in_seconds),
    Broken(5, "A pull that subscribes to a tag", ignores_the_subscription),
    Broken(5, "consumequeue/TOPIC/QUEUE", writes_no_queues),
    Broken(6, "No consumer of its topic sees", shows_half_messages),
    Broken(6, "It lies in RMQ_SYS_TRANS_HALF_TOPIC", forgets_where_it_was_to_go),
    Broken(7, "The delivered record says that it was committed", change_committed(sys_flag=0)),
    Broken(7, "An op message says", closes_nothing),
    Broken(8, "After ROLLBACK the message is in no queue", tests_one_bit),
    Broken(9, "A half message that nobody decides", asks_at_once),
    Broken(9, "The check-back carries the message", numbers_from_0),
    Broken(9, "After the answer UNKNOWN it asks again", asks_but_once),
    Broken(9, "Only producers of the group", asks_everybody),
    Broken(10, "A message that is discarded is kept", throws_discarded_messages_away),
    Broken(10, "While no producer of the group is online", counts_unasked),
    Broken(11, "After the restart consumers get the same", forgets_its_queues),
    Broken(11, "After the restart the pending transaction", forgets_what_is_pending),
    Broken(11, "After the restart the pending transaction", asks_about_what_is_decided),
    Broken(12, "A COMMIT after a ROLLBACK is refused", refuses_politely),
    Broken(12, "A COMMIT for an unknown transaction", believes_any_group),
    Broken(12, "A message that a client sends", takes_forged_messages),
    Broken(12, "A kill between the two records", closes_before_it_delivers),
    Broken(12, "A kill between the two records", delivers_again_after_a_crash),
)
BROKEN: Mapping[str, Broken] = {
    (broken.make.__name__ if broken.make.__name__ != "make" else "delivers_without_saying_so"): broken for broken in _ALL
}

if __name__ == "__main__":
    BROKEN[sys.argv.pop(1)].make()
    process.main()
