"""Rebuilds consume queues from recovered records. Each record is added at the queue offset that it contains.

A record's queue offset has no checksum. An offset that does not follow the queue's previous offset is therefore accepted only if
the queue's later records do not contradict it: the next one continues from it, or all have greater offsets until one is followed
by its successor. Otherwise one flipped bit could lose all later messages of a queue.
"""

from rocketmq_broker.message.record import FIXED_LENGTH
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.record_check import HEAD, MAX_SIZE, MIN_SIZE, check_record, resembles_record
from rocketmq_broker.store.queues.consume_queue import BLANK_SIZE, ConsumeQueue, Unit
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.queues.dispatch import DispatchRequest
from rocketmq_broker.store.recovery.queue_recovery import cut_at, fill_gap
from rocketmq_broker.store.recovery.report import RecoveryReport

_UNITS_READ_AHEAD = 512
_MAX_DOUBTFUL = 64
"""The number of rising offsets in a queue that confirm each other, although messages are missing between all of them."""


class LacksOlderMessages(Exception):
    """Raised if a queue lacks messages whose records are before the position where the scan began."""


class Requeue:
    """One pass over the log's records, in order."""

    def __init__(self, log: CommitLog, queues: ConsumeQueueTable, report: RecoveryReport, *, reads_whole_log: bool) -> None:
        """Creates a pass. `report` lists the damaged stretches of the log that were found so far."""
        self._log = log
        self._queues = queues
        self._report = report
        self._reads_whole_log = reads_whole_log
        self._doubtful: dict[tuple[bytes, int], list[DispatchRequest]] = {}
        """The records of each queue whose offsets are unconfirmed. Offsets at or after the queue's end are rising."""
        self._known: dict[tuple[bytes, int], tuple[int, list[Unit]]] = {}

    def put(self, request: DispatchRequest) -> None:
        """Adds the record to its queue if it is missing there. Raises LacksOlderMessages."""
        key = (request.topic, request.queue_id)
        slack = self._judge_doubtful(key, request) if self._doubtful and key in self._doubtful else 0
        queue = self._queues.find(*key)
        end = queue.max_offset if queue else 0
        if queue is not None and request.queue_offset < end:
            self._compare(queue, request)
        elif request.queue_offset <= end + slack and key not in self._doubtful:
            self._add(request)
        else:
            self._doubtful.setdefault(key, []).append(request)

    def _judge_doubtful(self, key: tuple[bytes, int], request: DispatchRequest) -> int:
        """Accepts or rejects the queue's unconfirmed records because of its next record.

        Returns 1 if a record was rejected, whose true offset may be the one before the next record's. Otherwise returns 0.
        """
        queue = self._queues.find(*key)
        end, following = queue.max_offset if queue else 0, request.queue_offset
        doubtful = self._doubtful.pop(key)
        continued = doubtful if following == doubtful[-1].queue_offset + 1 else []
        rising = continued or [it for it in doubtful if end <= it.queue_offset < following]
        slack = int(len(rising) < len(doubtful))
        for contradicted in doubtful:
            if contradicted not in rising:
                self._reject(contradicted)
        if rising and (following <= rising[-1].queue_offset + 1 + slack or len(rising) == _MAX_DOUBTFUL):
            for confirmed in rising:
                self._accept(confirmed)
        elif rising:
            self._doubtful[key] = rising
        return slack

    def finish(self) -> None:
        """Accepts or rejects the last records of each queue if their offsets are unconfirmed. Raises LacksOlderMessages."""
        while self._doubtful:
            _, doubtful = self._doubtful.popitem()
            for request in doubtful:
                queue = self._queues.find(request.topic, request.queue_id)
                end = queue.max_offset if queue else 0
                is_known_elsewhere = queue is not None and queue.max_commit_log_offset > request.commit_log_offset
                is_possible = request.queue_offset - end <= request.commit_log_offset // FIXED_LENGTH
                is_first = request.queue_offset == 0
                if not is_known_elsewhere and is_possible and (request.queue_offset > end or is_first):
                    self._accept(request)
                else:
                    self._reject(request)

    def points_to_message(self, queue: ConsumeQueue, queue_offset: int) -> bool:
        """Returns whether the unit at a queue offset points to its message.

        Also returns True if there is no unit, or if its message cannot be read.
        """
        unit = queue.unit(queue_offset)
        if unit is None or not MIN_SIZE <= unit.size <= MAX_SIZE or not self._log.segments.has(unit.commit_log_offset):
            return True
        record = check_record(self._log.segments.read(unit.commit_log_offset, unit.size), 0, unit.commit_log_offset)
        if record is None:
            return True
        return (record.topic, record.queue_id, record.queue_offset) == (queue.topic, queue.queue_id, queue_offset)

    def _compare(self, queue: ConsumeQueue, request: DispatchRequest) -> None:
        unit = self._known_unit(queue, request.queue_offset)
        if unit is None or unit == (request.commit_log_offset, request.size, request.tags_code):
            return
        is_right = self._may_be_record(unit) and self.points_to_message(queue, request.queue_offset)
        if unit.commit_log_offset == request.commit_log_offset or not is_right:
            self._truncate(queue, request.queue_offset)
            self._add(request)
        elif unit.commit_log_offset < request.commit_log_offset:
            # Either the topic was deleted and created again, or the record's queue offset is wrong.
            self._doubtful[(request.topic, request.queue_id)] = [request]

    def _may_be_record(self, unit: Unit) -> bool:
        """Returns whether an intact, damaged or expired record may begin at the position to which the unit points."""
        segments, offset = self._log.segments, unit.commit_log_offset
        if unit.size == BLANK_SIZE or 0 <= offset < segments.min_offset:
            return True
        return resembles_record(segments.read(offset, HEAD.size), unit.size, offset)

    def _known_unit(self, queue: ConsumeQueue, queue_offset: int) -> Unit | None:
        """Returns the unit at a queue offset. Reads units in blocks, because a queue's records are scanned in order."""
        key = (queue.topic, queue.queue_id)
        first, units = self._known.get(key, (0, []))
        if not first <= queue_offset < first + len(units):
            first, units = self._known[key] = (queue_offset, queue.units(queue_offset, _UNITS_READ_AHEAD))
        return units[queue_offset - first] if units else None

    def _truncate(self, queue: ConsumeQueue, queue_offset: int) -> None:
        cut_at(queue, queue_offset)
        self._known.pop((queue.topic, queue.queue_id), None)

    def _accept(self, request: DispatchRequest) -> None:
        queue = self._queues.find(request.topic, request.queue_id)
        if queue is not None and request.queue_offset < queue.max_offset:
            self._truncate(queue, request.queue_offset)
        elif not self._reads_whole_log:
            raise LacksOlderMessages(f"consume queue {request.topic.decode()}/{request.queue_id} is missing messages")
        self._add(request)

    def _reject(self, request: DispatchRequest) -> None:
        self._report.damaged.append((request.commit_log_offset, request.size))
        self._report.actions.append(
            f"skipped the record at {request.commit_log_offset}: its queue offset {request.queue_offset} is invalid"
        )

    def _add(self, request: DispatchRequest) -> None:
        queue = self._queues.find_or_create(request.topic, request.queue_id)
        if request.queue_offset > queue.max_offset and not queue.is_empty:
            name = f"{queue.topic.decode()}/{queue.queue_id}"
            lost = fill_gap(queue, request.queue_offset, *self._damage_before(request.commit_log_offset))
            self._report.actions.append(f"consume queue {name} lost {lost} damaged messages before offset {request.queue_offset}")
        self._queues.put(request)
        self._report.units_added += 1

    def _damage_before(self, commit_log_offset: int) -> tuple[int, int]:
        before = [damage for damage in self._report.damaged if damage[0] < commit_log_offset]
        return before[-1] if before else (0, BLANK_SIZE)
