"""Plays check() of Apache's broker on its two queues (TransactionalMessageServiceImpl of release 4.9.7).

    half topic   0 1 2 3 4 5      half messages, and the copies that check() writes
                     ^            half offset: all earlier messages are decided, written again or discarded
    op topic     0 1 2            each names a decided half message by its offset in the half topic
                   ^              op offset: all earlier messages are no longer needed

Each check() reads the op messages from the op offset into removeMap, which maps a half message to its op message. It
then walks the half topic from the half offset. A half message in removeMap is done. A young half message ends the
walk. Any other half message is written to the end of the half topic again, and a check-back about the copy is sent to
its producer.

The replay omits the limit of 60 s for one call, offsets without a message, clock steps, and offline producers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from rocketmq_broker.transaction.checking.check_policy import CheckPolicy

_OPS_AT_ONCE: Final = 32
"""The maximum number of op messages that fillOpRemoveMap reads in one call."""


@dataclass(frozen=True, slots=True)
class ApacheHalf:
    """A message of the half topic: a half message, or a copy of one."""

    name: str
    born_ms: int
    stored_ms: int
    checks: int = 0
    """TRANSACTION_CHECK_TIMES, a property of the message."""
    immunity_s: int | None = None
    first_offset: int | None = None
    """TRAN_PREPARED_QUEUE_OFFSET, a property of a copy that was written during the immunity."""


class PutBack(NamedTuple):
    """A half message that check() wrote to the half topic again."""

    name: str
    offset: int
    copy_offset: int
    checks: int
    is_asked: bool
    """Whether the producer is asked about the copy. It is not asked during the immunity."""


class CheckPass(NamedTuple):
    """The messages that one call of check() read and wrote, and the resulting offsets."""

    at_ms: int
    remove_map: dict[int, int]
    """The op messages that it read: the offset in the half topic, and the offset in the op topic."""
    done_op_offsets: list[int]
    put_back: list[PutBack]
    discarded: list[str]
    half_offset: int
    """The offset of the group CID_RMQ_SYS_TRANS in the half topic, after the call."""
    op_offset: int
    """The offset of the group CID_RMQ_SYS_TRANS in the op topic, after the call."""
    halves: int
    """The number of messages in the half topic, after the call."""
    ops: int

    @property
    def is_idle(self) -> bool:
        """True if the call read no op message and wrote nothing."""
        return not (self.remove_map or self.put_back or self.discarded)


class ApacheQueues:
    """The half topic and the op topic of Apache's broker, with the two offsets that it keeps in consumerOffset.json."""

    def __init__(self, policy: CheckPolicy) -> None:
        self._policy = policy
        self.halves: list[ApacheHalf] = []
        self.ops: list[int] = []
        """The half offset that each op message names."""
        self.half_offset = self.op_offset = 0

    def prepare(self, half: ApacheHalf) -> int:
        """Appends a half message. Returns its offset in the half topic."""
        self.halves.append(half)
        return len(self.halves) - 1

    def end(self, half_offset: int) -> int:
        """Appends the op message of a COMMIT or ROLLBACK, even if the half message already has one. Returns its offset."""
        self.ops.append(half_offset)
        return len(self.ops) - 1

    def check(self, now_ms: int) -> CheckPass:
        """Walks the half topic once. Returns what the call read and wrote."""
        walk = _Walk(self, self._policy, now_ms)
        half_offset = walk.go()
        self.half_offset, self.op_offset = half_offset, _op_offset_after(walk.done, self.op_offset)
        return CheckPass(
            at_ms=now_ms,
            remove_map=walk.read,
            done_op_offsets=sorted(walk.done),
            put_back=walk.put_back,
            discarded=walk.discarded,
            half_offset=self.half_offset,
            op_offset=self.op_offset,
            halves=len(self.halves),
            ops=len(self.ops),
        )


class _Walk:
    """The local variables of one call of check()."""

    def __init__(self, queues: ApacheQueues, policy: CheckPolicy, now_ms: int) -> None:
        self._queues = queues
        self._policy = policy
        self._now_ms = now_ms
        self._end = len(queues.halves)  # a copy gets its entry in the half queue a moment later, so this call does not find it
        self._next_op = queues.op_offset
        self.remove_map: dict[int, int] = {}
        self.done: list[int] = []
        self.read: dict[int, int] = {}
        self.put_back: list[PutBack] = []
        self.discarded: list[str] = []

    def go(self) -> int:
        """Returns the next half offset."""
        offset = self._queues.half_offset
        has_read_ops = self._fill_remove_map()
        while True:
            if offset in self.remove_map:
                self.done.append(self.remove_map.pop(offset))
            elif offset == self._end:
                return offset
            else:
                half = self._queues.halves[offset]
                if self._is_discarded(half):
                    self.discarded.append(half.name)
                elif half.stored_ms >= self._now_ms:
                    return offset
                else:
                    half = replace(half, checks=half.checks + 1)
                    age_ms = self._now_ms - half.born_ms
                    if half.immunity_s is not None and age_ms < half.immunity_s * 1000:
                        self._keep_immune(half, offset)
                    elif half.immunity_s is None and age_ms < self._policy.transaction_timeout_ms:
                        return offset
                    elif has_read_ops:  # later op messages may name it
                        has_read_ops = self._fill_remove_map()
                        continue
                    else:
                        self._put_back(half, offset, is_asked=True)
            offset += 1

    def _fill_remove_map(self) -> bool:
        """Reads op messages (fillOpRemoveMap). Returns False if there are no more."""
        named = self._queues.ops[self._next_op : self._next_op + _OPS_AT_ONCE]
        for op_offset, half_offset in enumerate(named, self._next_op):
            self.read[half_offset] = op_offset
            if half_offset < self._queues.half_offset:
                self.done.append(op_offset)
            else:
                self.remove_map[half_offset] = op_offset
        self._next_op += len(named)
        return bool(named)

    def _is_discarded(self, half: ApacheHalf) -> bool:
        """Returns whether the message must be discarded (needDiscard, needSkip)."""
        return half.checks >= self._policy.check_max or self._now_ms - half.born_ms > self._policy.file_reserved_ms

    def _keep_immune(self, half: ApacheHalf, offset: int) -> None:
        """Writes an immune half message again (putImmunityMsgBackToHalfQueue).

        For a copy, checkPrepareQueueOffset first searches removeMap for the first half message. The search never succeeds,
        because the half offset is already beyond that message. A decision during the immunity therefore ends only the first
        half message.
        """
        first_offset = offset if half.first_offset is None else half.first_offset
        self._put_back(replace(half, first_offset=first_offset), offset, is_asked=False)

    def _put_back(self, half: ApacheHalf, offset: int, *, is_asked: bool) -> None:
        """Writes the half message again (putBackHalfMsgQueue)."""
        copy_offset = self._queues.prepare(replace(half, stored_ms=self._now_ms))
        self.put_back.append(PutBack(half.name, offset, copy_offset, half.checks, is_asked))


def _op_offset_after(done: Iterable[int], op_offset: int) -> int:
    """Returns the offset of the first op message that is still needed, beginning at `op_offset` (calculateOpOffset)."""
    finished = set(done)
    while op_offset in finished:
        op_offset += 1
    return op_offset
