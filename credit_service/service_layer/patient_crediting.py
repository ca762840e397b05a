"""Credits a batch. Waits for the end of outages, and finds the order that causes a task to fail."""

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
"""The interval in seconds at which a pausing thread checks whether tasks pass again."""
_CAUSE_OF: Final = {Fault.OUTAGE: HoldCause.OUTAGE, Fault.SUSPECT: HoldCause.SUSPICION}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failed attempt to write the credits of a part."""

    part: BatchPart
    """The part, after this attempt was counted."""
    fault: Fault
    reason: str


@dataclass(frozen=True, slots=True)
class PatientCrediting:
    """Credits batches for the threads of a consumer. The threads share `holds`, which counts the written orders."""

    crediting: Crediting
    holds: Holds
    threads: int
    """The number of threads that credit batches at the same time."""
    wait: Callable[[ConsumeContext, float], None] = ConsumeContext.hold
    """A function that waits for a number of seconds. It raises MessagesWithdrawn."""
    gathered: Crediting | None = None
    """Writes first attempts, possibly combined with those of other threads. If it is None, `crediting` writes them."""

    def credit(self, credits: Sequence[Credit], context: ConsumeContext, within: HeldBatch | None = None) -> list[Credited]:
        """Returns the outcome of each credit. Written credits are durable on return.

        `within` is the held batch that contains the credits, if any. Raises MessagesWithdrawn if the queue was assigned to
        another consumer. Some orders may have been credited by then; their redelivery changes nothing.
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
        """Tries to credit a part. Returns the outcomes, or the failure.

        A consumer that stops waits for running attempts, but not for held orders.
        """
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
            # The answer to an earlier attempt does not show the current state of the database.
            self.holds.has_passed(kind, 0 if part.is_unanswered else began)
        return outcomes

    def _pause(self, context: ConsumeContext, seconds: float, kind: str) -> None:
        """Pauses for a number of seconds. Ends early if any thread writes an order, because the database works again."""
        passed = self.holds.passed(kind)
        while seconds > 0 and self.holds.passed(kind) == passed:
            self.wait(context, min(seconds, _SLICE_S))
            seconds -= _SLICE_S

    def _step_after(self, failure: _Failure) -> FaultStep:
        tries = failure.part.tries
        record = failure.part.record(is_in_the_way=self.holds.is_in_the_way(tries, self.threads))
        return next_step(failure.fault, record)


def _parts_of_one_kind(credits: Sequence[Credit]) -> Iterator[BatchPart]:
    """Yields consecutive credits of one kind as parts. A batch from a retry topic may contain both kinds."""
    begin = 0
    for _, run in groupby(credits, key=lambda credit: credit.kind):
        end = begin + len(list(run))
        yield BatchPart(begin, end)
        begin = end


def _what_is_left(step: FaultStep, failure: _Failure, credits: Sequence[Credit]) -> tuple[BatchPart, ...]:
    """Returns the parts that remain to be tried after this step."""
    part, reason = failure.part, failure.reason
    if step is FaultStep.SPLIT:
        logger.warning("a task with %d orders failed; retrying each half alone: %s", part.end - part.begin, reason)
        return part.halves()
    if step is FaultStep.GIVE_BACK:
        order_id = credits[part.begin].order_id
        logger.error("order %s will be retried later: its task fails while those of other orders succeed: %s", order_id, reason)
        return ()
    return () if step is FaultStep.GIVE_WAY else (part,)
