"""Twelve faulty brokers. Each has one typical mistake and fails exactly one stage.

`python -m tutorials.build_your_own.wrong_broker NAME -c FILE` runs the broker NAME: the solution with one function replaced.
"""

import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tutorials.build_your_own.solution import check_back, consume_queue, frames, record, requests, transactions
from tutorials.build_your_own.solution.__main__ import main
from tutorials.build_your_own.solution.commit_log import CommitLog
from tutorials.build_your_own.solution.consume_queue import Unit
from tutorials.build_your_own.solution.frames import Command, FrameReader
from tutorials.build_your_own.solution.record import Message, Record
from tutorials.build_your_own.solution.requests import Client, Requests
from tutorials.build_your_own.solution.transactions import Pending, Transactions


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake and the stage that detects it."""

    stage: int
    make: Callable[[], None]
    """A function that replaces a function of the solution with a faulty one in this process."""


def takes_frames_in_one_piece_alone() -> None:
    """Makes the broker assume that each read of the socket returns only complete frames."""

    def feed(self: FrameReader, data: bytes) -> list[Command]:
        commands = []
        while data:
            end = 4 + int.from_bytes(data[:4])
            commands.append(frames.decode(data[4:end]))
            data = data[end:]
        return commands

    FrameReader.feed = feed  # type: ignore[method-assign]


def counts_over_all_queues() -> None:
    """Makes the broker count queueOffset over all queues of the topic in the response to a send."""
    counted: dict[str, int] = {}

    def place_of(stored: Record, queue_id: int) -> Mapping[str, str]:
        topic = stored.message.topic
        counted[topic] = counted.get(topic, -1) + 1
        is_half = topic == transactions.HALF_TOPIC
        return {**right(stored, queue_id), "queueOffset": str(stored.queue_offset if is_half else counted[topic])}

    right = requests.place_of
    requests.place_of = place_of


def goes_on_too_far() -> None:
    """Makes the broker advance nextBeginOffset by the number of requested messages, not of found messages."""

    def pull_message(self: Requests, request: Command, client: Client) -> Command:
        answer = right(self, request, client)
        if not answer.body:
            return answer
        next_offset = int(request.fields["queueOffset"]) + int(request.fields["maxMsgNums"])
        return replace(answer, fields={**answer.fields, "nextBeginOffset": str(next_offset)})

    right = Requests.pull_message
    Requests.pull_message = pull_message  # type: ignore[method-assign]


def keeps_the_sign_of_the_checksum() -> None:
    """Makes the broker keep the highest bit of BODYCRC."""

    def body_crc(body: bytes) -> int:
        return zlib.crc32(body)

    record.body_crc = body_crc


def hashes_without_a_sign() -> None:
    """Makes the broker write the hash of a tag as an unsigned number."""

    def encode(unit: Unit) -> bytes:
        return right(replace(unit, tags_code=unit.tags_code & 0xFFFFFFFF))

    right = consume_queue.encode
    consume_queue.encode = encode


def reads_uncommitted() -> None:
    """Makes the broker return pending half messages of the queue to a pull at the queue's end."""

    def pull_message(self: Requests, request: Command, client: Client) -> Command:
        answer = right(self, request, client)
        place = request.fields["topic"], request.fields["queueId"]
        waiting = [
            record.encode(check_back.as_sent(pending.half, 0))
            for pending in self.transactions.pending.values()
            if (pending.half.property("REAL_TOPIC"), pending.half.property("REAL_QID")) == place
        ]
        behind_the_end = int(request.fields["queueOffset"]) - int(answer.fields.get("maxOffset", "0"))
        if not 0 <= behind_the_end < len(waiting):
            return answer
        return replace(answer, code=0, body=b"".join(waiting[behind_the_end:]))

    right = Requests.pull_message
    Requests.pull_message = pull_message  # type: ignore[method-assign]


def forgets_the_queue() -> None:
    """Makes the broker deliver each committed message to queue 0 instead of the message's queue."""

    def committed(half: Record) -> Message:
        return replace(right(half), queue_id=0)

    right = transactions.committed
    transactions.committed = committed


def rolls_back_in_memory() -> None:
    """Makes the broker write no op message for a ROLLBACK, so that a restart makes the transaction pending again."""

    def roll_back(self: Transactions, pending: Pending) -> None:
        del self.pending[pending.half.commit_log_offset]

    Transactions.roll_back = roll_back  # type: ignore[method-assign]


def asks_about_the_half_topic() -> None:
    """Makes the broker send the half topic instead of the original topic in a check-back."""

    def as_sent(half: Record, checks: int) -> Record:
        sent = right(half, checks)
        return replace(sent, message=replace(sent.message, topic=transactions.HALF_TOPIC))

    right = check_back.as_sent
    check_back.as_sent = as_sent


def asks_once_more() -> None:
    """Makes the broker send one check-back more than transactionCheckMax allows."""

    def init(self: check_back.CheckBack, transactions: Transactions, policy: check_back.CheckPolicy) -> None:
        right(self, transactions, replace(policy, check_max=policy.check_max + 1))

    right = check_back.CheckBack.__init__
    check_back.CheckBack.__init__ = init  # type: ignore[method-assign]


def goes_on_behind_the_torn_record() -> None:
    """Makes the broker treat the last non-zero byte as the log's end after a restart, and so keep an incomplete record."""

    def cut_torn_tail(self: CommitLog) -> None:
        self.end = len(self.read(0, self.file_size).rstrip(b"\0"))

    CommitLog.cut_torn_tail = cut_torn_tail  # type: ignore[method-assign]


def believes_every_commit() -> None:
    """Makes the broker deliver a half message at each COMMIT, even if the transaction has already been decided."""

    def end(self: Transactions, decision: int, commit_log_offset: int, queue_offset: int, group: str) -> None:
        # A late UNKNOWN must not make the half message pending again: it would cause more check-backs than stage 10 allows.
        is_decided = decision == record.COMMITTED and commit_log_offset not in self.pending
        half = self.store.log.record_at(commit_log_offset) if is_decided else None
        if half is not None and half.message.topic == transactions.HALF_TOPIC:
            self.pending[commit_log_offset] = Pending(half, due_s=0)
        right(self, decision, commit_log_offset, queue_offset, group)

    right = Transactions.end
    Transactions.end = end  # type: ignore[method-assign]


MISTAKES: Final[Mapping[str, Mistake]] = {
    mistake.make.__name__: mistake
    for mistake in (
        Mistake(1, takes_frames_in_one_piece_alone),
        Mistake(2, counts_over_all_queues),
        Mistake(3, goes_on_too_far),
        Mistake(4, keeps_the_sign_of_the_checksum),
        Mistake(5, hashes_without_a_sign),
        Mistake(6, reads_uncommitted),
        Mistake(7, forgets_the_queue),
        Mistake(8, rolls_back_in_memory),
        Mistake(9, asks_about_the_half_topic),
        Mistake(10, asks_once_more),
        Mistake(11, goes_on_behind_the_torn_record),
        Mistake(12, believes_every_commit),
    )
}


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in MISTAKES:
        sys.exit(f"usage: python -m tutorials.build_your_own.wrong_broker NAME -c FILE; NAME is one of {', '.join(MISTAKES)}")
    MISTAKES[sys.argv.pop(1)].make()
    main()
