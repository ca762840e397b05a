"""A part of a batch, with the record of its failed tasks."""

from dataclasses import dataclass, replace

from credit_service.service_layer.faults import Fault, FaultRecord


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The orders at positions `begin` to `end` (exclusive) of a batch, which are credited by one task.

    The counters below compare this part with other tasks. A task passes if it writes a new entry.
    """

    begin: int
    end: int
    is_unanswered: bool = False
    """True if the last attempt was not answered, so that its task may still be waiting."""
    tries: int = 0
    suspected_at: int | None = None
    """The number of tasks that had passed when this part, or the part that it was split from, was first suspected."""
    failed_at: int | None = None
    """The number of tasks that had passed when this part, or the part that it was split from, last failed."""
    failures_alone: int = 0
    others_pass: bool = False

    def failed(self, fault: Fault, *, passed_before: int, passed: int) -> "BatchPart":
        """Returns a copy of the part after another failed attempt.

        `passed_before` tasks had passed when the attempt began, and `passed` tasks when it ended.
        """
        is_alone = self.failed_at is not None and passed_before > self.failed_at
        part = replace(
            self,
            failed_at=passed,
            failures_alone=self.failures_alone + 1 if is_alone else 0,
            is_unanswered=fault is Fault.OUTAGE,
        )
        return part if fault is Fault.OUTAGE else part._suspected(passed_before, passed)

    def record(self, *, is_in_the_way: bool) -> FaultRecord:
        """Returns the facts from which `faults.next_step` chooses the next step."""
        return FaultRecord(
            orders=self.end - self.begin,
            tries=self.tries,
            others_pass=self.others_pass,
            failures_alone=self.failures_alone,
            is_in_the_way=is_in_the_way,
        )

    def halves(self) -> "tuple[BatchPart, BatchPart]":
        """Returns the two halves, which are tried separately instead of this part."""
        middle = (self.begin + self.end) // 2
        half = replace(self, tries=0, is_unanswered=False)
        return replace(half, end=middle), replace(half, begin=middle)

    def _suspected(self, passed_before: int, passed: int) -> "BatchPart":
        if self.suspected_at is None:
            return replace(self, tries=1, suspected_at=passed)
        return replace(self, tries=self.tries + 1, others_pass=passed_before > self.suspected_at)
