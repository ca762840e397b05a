"""Credits a batch, however long that takes: waits for the end of outages, and finds the order that makes its task fail."""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.batch_part import BatchPart
from credit_service.service_layer.crediting import Credited, Crediting, CreditingFailed, CreditingUnavailable, Later
from credit_service.service_layer.faults import Fault, FaultStep, next_step
from rocketmq_broker.client import ConsumeContext
from service_runtime.failing.holds import HeldBatch, HoldCause, Holds
from service_runtime.failing.trying_again import pause_s

_SLICE_S: Final = 1.0
"""The longest delay before a pause notices that tasks pass again."""
_CAUSE_OF: Final = {Fault.OUTAGE: HoldCause.OUTAGE, Fault.SUSPECT: HoldCause.SUSPICION}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A try that did not write its credits."""

    part: BatchPart
    """The part, with this try counted."""
    fault: Fault
    reason: str


@dataclass(frozen=True, slots=True)
class PatientCrediting:
    """Credits batches for the threads of a consumer. By `holds` each thread learns whether the others' orders pass."""

    crediting: Crediting
    holds: Holds
    threads: int
    """How many threads credit batches at a time."""
    wait: Callable[[ConsumeContext, float], None] = ConsumeContext.hold
    """Waits for a number of seconds; raises MessagesWithdrawn."""
    gathered: Crediting | None = None
    """Writes first tries, perhaps with those of other threads; without it `crediting` does."""

    def credit(self, credits: Sequence[Credit], context: ConsumeContext, within: HeldBatch | None = None) -> list[Credited]:
        """Returns the outcome of each credit, durable on return. `within` is a held batch that they are part of.

        Raises MessagesWithdrawn when the orders are no longer this consumer's; some may be credited then, which does no harm.
        """
        outcomes: list[Credited] = [None] * len(credits)
        parts = deque(_parts_of_one_kind(credits))
        failures = 0
        with self.holds.batch(len(credits), within) as held:
            while parts:
                part = parts.popleft()
                result = self._try(part, credits, held, context)
                if not isinstance(result, _Failure):
                    outcomes[part.begin : part.end] = result
                    failures = 0
                    continue
                self.wait(context, 0)
                step = self._step_after(result)
                parts.extend(_what_is_left(step, result, credits))
                if step is FaultStep.GIVE_WAY:
                    self.holds.gave_way(1, HoldCause.SUSPICION)
                    outcomes[part.begin] = Later.GAVE_WAY
                if step is FaultStep.HOLD:
                    failures += 1
                    held.hold(_CAUSE_OF[result.fault], result.reason)
                    self._pause(context, pause_s(failures), credits[part.begin].kind)
        return outcomes

    def _try(
        self, part: BatchPart, credits: Sequence[Credit], held: HeldBatch, context: ConsumeContext
    ) -> "list[CreditOutcome | None] | _Failure":
        """Tries a part. A stopping consumer waits for tries under way, but not for held orders."""
        kind = credits[part.begin].kind
        passed_before, began = self.holds.passed(kind), self.holds.moment()
        is_first = part.failed_at is None and not held.is_held
        crediting = self.gathered if self.gathered is not None and is_first else self.crediting
        try:
            outcomes = crediting.credit(
                credits[part.begin : part.end],
                is_again=part.is_unanswered,
                is_given_up=lambda: held.is_held and context.is_withdrawn,
            )
        except (CreditingUnavailable, CreditingFailed) as error:
            fault = Fault.OUTAGE if isinstance(error, CreditingUnavailable) else Fault.SUSPECT
            failed = part.failed(fault, passed_before=passed_before, passed=self.holds.passed(kind))
            return _Failure(failed, fault, str(error))
        if CreditOutcome.CREDITED in outcomes:
            # The answer to an earlier try says nothing about the present database.
            self.holds.has_passed(kind, 0 if part.is_unanswered else began)
        return outcomes

    def _pause(self, context: ConsumeContext, seconds: float, kind: str) -> None:
        """Pauses. Ends early when an order is written, because that tells all threads that writing works again."""
        passed = self.holds.passed(kind)
        while seconds > 0 and self.holds.passed(kind) == passed:
            self.wait(context, min(seconds, _SLICE_S))
            seconds -= _SLICE_S

    def _step_after(self, failure: _Failure) -> FaultStep:
        tries = failure.part.tries
        record = failure.part.record(is_in_the_way=self.holds.is_in_the_way(tries, self.threads))
        return next_step(failure.fault, record)


def _parts_of_one_kind(credits: Sequence[Credit]) -> Iterator[BatchPart]:
    """Yields the runs of credits of one kind: a retry topic has messages of all topics."""
    begin = 0
    for _, run in groupby(credits, key=lambda credit: credit.kind):
        end = begin + len(list(run))
        yield BatchPart(begin, end)
        begin = end


def _what_is_left(step: FaultStep, failure: _Failure, credits: Sequence[Credit]) -> tuple[BatchPart, ...]:
    """Returns the parts still to try."""
    part, reason = failure.part, failure.reason
    if step is FaultStep.SPLIT:
        logger.warning("a task with %d orders failed, now each half is tried alone: %s", part.end - part.begin, reason)
        return part.halves()
    if step is FaultStep.GIVE_BACK:
        order_id = credits[part.begin].order_id
        logger.error("order %s comes again later: its task fails while those of other orders succeed: %s", order_id, reason)
        return ()
    return () if step is FaultStep.GIVE_WAY else (part,)
