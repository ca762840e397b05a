"""Credits a batch however long that takes: waits outages out, and finds the order that makes its task fail."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from broker.client import ConsumeContext
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.batch_part import BatchPart
from credit_service.service_layer.crediting import Crediting, CreditingFailed, CreditingUnavailable
from credit_service.service_layer.faults import Fault, Step, next_step, pause_s
from credit_service.service_layer.holds import HeldBatch, Holds

_SLICE_S: Final = 1.0
"""How soon a pause notices that tasks pass again."""

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
    """Credits batches for the threads of a consumer; from `holds` each learns whether orders of the others pass."""

    crediting: Crediting
    holds: Holds
    threads: int
    """How many threads credit batches at a time."""
    wait: Callable[[ConsumeContext, float], None] = ConsumeContext.hold
    """Waits for a number of seconds; raises MessagesWithdrawn."""

    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[CreditOutcome | None]:
        """One outcome for each credit, durable on return; None for an order that is to come again later.

        Raises MessagesWithdrawn when the orders are no longer this consumer's; some may be credited then, which changes nothing.
        """
        outcomes: list[CreditOutcome | None] = [None] * len(credits)
        parts = deque([BatchPart(0, len(credits))])
        failures = 0
        with self.holds.batch(len(credits)) as held:
            while parts:
                part = parts.popleft()
                result = self._try(part, credits, held, context)
                if not isinstance(result, _Failure):
                    outcomes[part.begin : part.end] = result
                    failures = 0
                    continue
                self.wait(context, 0)
                step = self._step_after(result, context)
                parts.extend(_what_is_left(step, result, credits))
                if step is Step.HOLD:
                    failures += 1
                    held.hold(result.fault, result.reason)
                    self._pause(context, pause_s(failures))
        return outcomes

    def _try(
        self, part: BatchPart, credits: Sequence[Credit], held: HeldBatch, context: ConsumeContext
    ) -> "list[CreditOutcome | None] | _Failure":
        """A stopping consumer waits for what is under way, but not for orders that are held."""
        passed_before = self.holds.passed
        try:
            outcomes = self.crediting.credit(
                credits[part.begin : part.end],
                is_again=part.is_unanswered,
                is_given_up=lambda: held.is_held and context.is_withdrawn,
            )
        except (CreditingUnavailable, CreditingFailed) as error:
            fault = Fault.OUTAGE if isinstance(error, CreditingUnavailable) else Fault.SUSPECT
            failed = part.failed(fault, passed_before=passed_before, passed=self.holds.passed)
            return _Failure(failed, fault, str(error))
        self.holds.has_passed()
        return outcomes

    def _pause(self, context: ConsumeContext, seconds: float) -> None:
        """Ends early when a task passes: that tells all threads that it works again."""
        passed = self.holds.passed
        while seconds > 0 and self.holds.passed == passed:
            self.wait(context, min(seconds, _SLICE_S))
            seconds -= _SLICE_S

    def _step_after(self, failure: _Failure, context: ConsumeContext) -> Step:
        record = failure.part.record(is_in_the_way=self.holds.suspected >= self.threads)
        step = next_step(failure.fault, record)
        if step is Step.ASK_THE_WORKERS:
            self._ask_the_workers(context)
            return Step.HOLD
        return step

    def _ask_the_workers(self, context: ConsumeContext) -> None:
        """A task without orders that succeeds is one that passes: who fails again after it is to blame."""
        try:
            self.crediting.credit([], is_again=False, is_given_up=lambda: context.is_withdrawn)
        except (CreditingUnavailable, CreditingFailed) as error:
            logger.info("a task without orders does not succeed either: %s", error)
        else:
            self.holds.has_passed()


def _what_is_left(step: Step, failure: _Failure, credits: Sequence[Credit]) -> tuple[BatchPart, ...]:
    """The parts that are to be tried further."""
    part, reason = failure.part, failure.reason
    if step is Step.SPLIT:
        logger.warning("a task with %d orders failed, now each half is tried alone: %s", part.end - part.begin, reason)
        return part.halves()
    if step is Step.GIVE_BACK:
        order_id = credits[part.begin].order_id
        logger.error("order %s comes again later: its task fails while those of other orders succeed: %s", order_id, reason)
        return ()
    return (part,)
