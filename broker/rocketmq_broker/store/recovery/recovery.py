"""Recovers a store when it is opened, and reports all changes. Raises an error if the state of the store is ambiguous.

A torn tail of the commit log is cut off and zeroed. Damage in the middle loses only the records that it covers. Consume queues
and index are completed from the log, or rebuilt if they are missing. RocketMQ's recoverNormally and recoverAbnormally stop at
the first damage instead.
"""

from rocketmq_broker.message import topics
from rocketmq_broker.store.index.index import Index
from rocketmq_broker.store.log.commit_log import CommitLog
from rocketmq_broker.store.log.log_scan import LogScan, ScannedStretch
from rocketmq_broker.store.log.record_check import CheckedRecord
from rocketmq_broker.store.queues.consume_queue import ConsumeQueue
from rocketmq_broker.store.queues.consume_queue_table import ConsumeQueueTable
from rocketmq_broker.store.queues.dispatch import DispatchRequest, is_indexed, is_queued, unit_tags_code
from rocketmq_broker.store.recovery.damaged_units import find_message
from rocketmq_broker.store.recovery.durable_state import Checkpoint, DurableState, Progress
from rocketmq_broker.store.recovery.queue_recovery import cut_after, cut_at, recover_queue
from rocketmq_broker.store.recovery.report import RecoveryReport
from rocketmq_broker.store.recovery.requeue import LacksOlderMessages, Requeue
from rocketmq_broker.store.settings import StoreConfig

_SEGMENTS_AFTER_STOP = 3
"""The number of segments to read, from the last one, after a clean stop without `progress.json` (CommitLog.recoverNormally)."""
_INDEX_BATCH = 1000


def recover(
    log: CommitLog,
    queues: ConsumeQueueTable,
    index: Index,
    durable: DurableState,
    config: StoreConfig,
) -> RecoveryReport:
    """Loads all files and makes them consistent, so that records can be appended. Raises DamagedStore or OSError."""
    report = RecoveryReport(durable.was_stopped_cleanly)
    if not report.was_stopped_cleanly:
        report.actions.append("the last broker did not stop cleanly")
    durable.mark_running()
    report.actions += log.segments.load()
    progress, checkpoint = durable.progress(), durable.checkpoint()
    report.last_store_timestamp = checkpoint.commit_log
    report.believed_ms = progress.believed_ms if progress else None
    has_cut = _load_queues(queues, progress, log.min_offset, report)
    _load_index(index, report)
    if not log.segments.starts:
        _start_empty(log, queues, index, report)
        return report
    _Recovery(log, queues, index, config, report, reads_all=has_cut).run(progress, checkpoint)
    return report


def _load_queues(queues: ConsumeQueueTable, progress: Progress | None, log_begins: int, report: RecoveryReport) -> bool:
    """Loads the queues. Returns whether a queue has lost units, which must be rebuilt from the commit log."""
    queues.load()
    has_cut = False
    for queue in queues:
        synced_offset = progress.max_offset(queue.topic, queue.queue_id) if progress else None
        recovered = recover_queue(queue, synced_offset)
        report.actions += recovered.repaired
        has_cut = has_cut or recovered.was_cut
        if progress is not None and synced_offset is None and queue.is_empty:
            # The queue was created after the progress was saved. The scan from there finds all its messages.
            continue
        if queue.is_empty or queue.min_offset > log_begins == 0:
            # A queue's folder always contains files, and the first file exists until a message expires.
            report.actions.append(f"consume queue {queue.topic.decode()}/{queue.queue_id} is missing its beginning")
            queue.destroy()
            has_cut = True
    return has_cut


def _load_index(index: Index, report: RecoveryReport) -> None:
    index.load()
    if not report.was_stopped_cleanly and (corrected := index.repair()):
        report.actions.append(f"corrected {corrected} index slots that pointed to lost entries")


def _start_empty(log: CommitLog, queues: ConsumeQueueTable, index: Index, report: RecoveryReport) -> None:
    if len(queues):
        report.actions.append(f"the commit log is missing: deleted {len(queues)} consume queues without messages")
        for queue in queues:
            queue.destroy()
        for topic in queues.names():
            queues.forget_topic(topic)
    index.clear()
    log.begin_at(0)


class _Recovery:
    """The recovery of a store that has a commit log."""

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        index: Index,
        config: StoreConfig,
        report: RecoveryReport,
        *,
        reads_all: bool,
    ) -> None:
        self._reads_all = reads_all
        self._log = log
        self._queues = queues
        self._index = index
        self._config = config
        self._report = report
        self._requeue = Requeue(log, queues, report, reads_whole_log=True)
        self._topics: set[bytes] = set()
        self._to_index: list[DispatchRequest] = []
        self._confirmed = 0

    def run(self, progress: Progress | None, checkpoint: Checkpoint) -> None:
        """Scans the log, completes consume queues and index, and cuts off a torn tail."""
        log, report = self._log, self._report
        log.written_position = log.segments.end
        start = self._scan_start(progress, checkpoint)
        try:
            scan = self._scan(start)
        except LacksOlderMessages as reason:
            scan = self._scan_all(str(reason))
        self._cut_tail(scan, progress)
        log.begin_at(scan.end)
        report.end = scan.end
        self._index.continue_after(min(self._index.end_offset, scan.end - 1))
        if self._cut_queues() and report.scanned_from > log.min_offset:
            self._scan_all("consume queues had damaged units")
            self._cut_queues()
        for queue in self._queues:
            queue.correct_min_offset(log.min_offset)
        if report.units_added:
            report.actions.append(f"rebuilt {report.units_added} missing or wrong consume queue units")

    def _scan_start(self, progress: Progress | None, checkpoint: Checkpoint) -> int:
        first = self._log.min_offset
        if len(self._queues) == 0:
            self._report.actions.append("the consume queues are missing: they are rebuilt from the commit log")
            return first
        if self._config.is_index_enabled and self._index.is_empty and (progress is None or progress.index_end_offset >= 0):
            self._report.actions.append("the index is missing: it is rebuilt from the commit log")
            return first
        if self._reads_all:
            return first
        if progress is not None:
            if lost := self._what_was_lost(progress):
                self._report.actions.append(f"{lost}: rebuilt from the commit log")
                return first
            start = self._progress_start(progress)
            if start is not None:
                self._index.durable_offset = progress.index_offset
                return start
        start = self._start_without_progress(checkpoint)
        if self._config.is_index_enabled and self._index.end_offset < start:
            # The index may have fewer entries than the checkpoint indicates, because the checkpoint counts whole index files.
            start = max(self._index.end_offset, first)
            start = start if self._log.store_timestamp(start) >= 0 else self._log.segments.start_of(start)
        return start

    def _start_without_progress(self, checkpoint: Checkpoint) -> int:
        starts = self._log.segments.starts
        if self._report.was_stopped_cleanly:
            return starts[max(len(starts) - _SEGMENTS_AFTER_STOP, 0)]
        for start in reversed(starts):
            if 0 < self._log.store_timestamp(start) <= checkpoint.recover_from:
                return start
        return starts[0]

    def _what_was_lost(self, progress: Progress) -> str | None:
        for topic, lengths in progress.queues.items():
            for queue_id, max_offset in lengths.items():
                queue = self._queues.find(topic.encode(), queue_id)
                if queue is None or queue.max_offset < max_offset:
                    return f"consume queue {topic}/{queue_id} lost messages"
        if self._config.is_index_enabled and self._index.end_offset < progress.index_end_offset:
            self._index.clear()
            return "the index lost messages"
        return None

    def _progress_start(self, progress: Progress) -> int | None:
        start = progress.position
        if self._config.is_index_enabled:
            start = min(start, progress.index_offset if progress.index_offset >= 0 else self._log.min_offset)
        start = max(start, self._log.min_offset)
        if start == self._log.segments.end:
            return start
        head = self._log.segments.read(start, 8)
        is_end = len(head) == 8 and not head.strip(b"\0")
        return start if is_end or self._log.is_blank(start) or self._log.store_timestamp(start) >= 0 else None

    def _scan(self, start: int) -> LogScan:
        report = self._report
        self._confirmed = max((queue.max_commit_log_offset for queue in self._queues), default=0)
        report.scanned_from = start
        report.records_scanned = 0
        report.damaged.clear()
        self._to_index.clear()
        self._requeue = Requeue(self._log, self._queues, report, reads_whole_log=start == self._log.min_offset)
        scan = LogScan(self._log, start, self._is_credible)
        for item in scan.found():
            if item.record is None:
                report.damaged.append((item.commit_log_offset, item.size))
                report.actions.append(
                    f"skipped {item.size} damaged bytes at {item.commit_log_offset}; the records after them are intact"
                )
                continue
            report.records_scanned += 1
            report.last_store_timestamp = item.record.store_timestamp
            self._dispatch(item, item.record)
        self._requeue.finish()
        self._add_to_index()
        return scan

    def _scan_all(self, reason: str) -> LogScan:
        self._report.actions.append(f"{reason}: the whole commit log is read again")
        return self._scan(self._log.min_offset)

    def _is_credible(self, commit_log_offset: int, record: CheckedRecord, is_within_damage: bool) -> bool:
        """Returns whether a record found after damage belongs to the log.

        A record inside a damaged one may be part of a client's message, so a consume queue must also point to it. Any other
        record may be a remnant of a tail that RocketMQ cut off without clearing it. Such a remnant is older than the records
        before it, or its queue already has a message at its queue offset.
        """
        if is_within_damage:
            return self._is_pointed_to(commit_log_offset, record)
        if commit_log_offset < self._confirmed:
            return True
        if record.store_timestamp < self._report.last_store_timestamp:
            return False
        queue = self._queues.find(record.topic, record.queue_id)
        return not is_queued(record.sys_flag) or queue is None or record.queue_offset >= queue.max_offset

    def _is_pointed_to(self, commit_log_offset: int, record: CheckedRecord) -> bool:
        queue = self._queues.find(record.topic, record.queue_id)
        unit = None if queue is None else queue.unit(record.queue_offset)
        return unit is not None and (unit.commit_log_offset, unit.size) == (commit_log_offset, record.size)

    def _dispatch(self, item: ScannedStretch, record: CheckedRecord) -> None:
        if not self._is_topic(record.topic):
            self._report.damaged.append((item.commit_log_offset, item.size))
            self._report.actions.append(f"skipped the record at {item.commit_log_offset}: its topic is invalid")
            return
        tags_code = unit_tags_code(record.topic, record.properties, record.store_timestamp, self._config.delay_levels_ms)
        request = DispatchRequest(
            record.topic, record.queue_id, record.queue_offset, item.commit_log_offset, record.size, tags_code,
            record.store_timestamp, record.properties, is_queued(record.sys_flag), is_indexed(record.sys_flag),
        )  # fmt: skip
        if request.is_queued:
            self._requeue.put(request)
        self._to_index.append(request)
        if len(self._to_index) >= _INDEX_BATCH:
            self._add_to_index()

    def _is_topic(self, topic: bytes) -> bool:
        """Returns whether the topic is valid. A log has few topics and many records: each topic is decoded once."""
        if topic not in self._topics:
            if not topics.is_topic(topic.decode(errors="replace")):
                return False
            self._topics.add(topic)
        return True

    def _add_to_index(self) -> None:
        self._index.add(self._to_index)
        self._to_index.clear()

    def _cut_queues(self) -> bool:
        """Drops wrong units at the ends of queues. Returns whether the log still contains the message of a dropped unit."""
        cut = [queue for queue in self._queues if self._cut_queue(queue)]
        return any(find_message(self._log, queue, queue.max_offset) is not None for queue in cut)

    def _cut_queue(self, queue: ConsumeQueue) -> bool:
        dropped = cut_after(queue, self._log.end)
        while queue.max_offset and not self._requeue.points_to_message(queue, queue.max_offset - 1):
            dropped += cut_at(queue, queue.max_offset - 1)
        if dropped:
            name = f"{queue.topic.decode()}/{queue.queue_id}"
            self._report.actions.append(f"consume queue {name} pointed past the commit log: dropped {dropped} units")
        return dropped > 0

    def _cut_tail(self, scan: LogScan, progress: Progress | None) -> None:
        if scan.has_torn_tail:
            self._report.actions.append(f"the commit log had a torn tail: everything after {scan.end} was cut off")
        elif self._report.was_stopped_cleanly and progress is not None and progress.position == scan.end:
            return
        segments = self._log.segments
        # A killed broker may have left unsynced data in several segments. Readers must not see it before it is durable.
        segments.sync(self._report.scanned_from, segments.start_of(scan.end))
        if segments.has(scan.end):
            segments.truncate(scan.end)
