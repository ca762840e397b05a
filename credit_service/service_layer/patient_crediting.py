"""Credits a batch however long that takes: waits outages out, and finds the order that makes its task fail."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.client import ConsumeContext
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Crediting, CreditingFailed, CreditingUnavailable
from credit_service.service_layer.faults import Fault, Step, next_step, pause_s
from credit_service.service_layer.holds import HeldBatch, Holds

_SLICE_S: Final = 1.0
"""How soon a pause notices that tasks pass again."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Part:
    """Orders of the batch that are tried together, by their positions."""

    begin: int
    end: int
    tries: int = 0
    """How many of its tasks failed so that its orders came under suspicion."""
    passed_before: int | None = None
    """How many tasks had passed when it came under suspicion first, or what it is a half of did."""
    is_unanswered: bool = False
    """Whether its last try had no answer: its task may be waiting still."""

    @property
    def orders(self) -> int:
        return self.end - self.begin

    def unanswered(self) -> "_Part":
        return replace(self, is_unanswered=True)

    def suspected(self, passed: int) -> "_Part":
        before = passed if self.passed_before is None else self.passed_before
        return replace(self, tries=self.tries + 1, passed_before=before, is_unanswered=False)

    def halves(self) -> tuple["_Part", "_Part"]:
        middle = (self.begin + self.end) // 2
        half = replace(self, tries=0)
        return replace(half, end=middle), replace(half, begin=middle)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A try that did not write its credits."""

    part: _Part
    """As it is to be tried next."""
    fault: Fault
    reason: str
    others_pass: bool = False
    """Whether tasks of others had passed since the part came under suspicion, before this try of it began."""


@dataclass(frozen=True, slots=True)
class PatientCrediting:
    """Credits batches for the threads of a consumer; from `holds` each learns whether orders of the others pass."""

    crediting: Crediting
    holds: Holds
    threads: int
    """How many threads credit batches at a time."""
    wait: Callable[[ConsumeContext, float], None] = ConsumeContext.hold
    """Waits so many seconds; raises MessagesWithdrawn."""

    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[CreditOutcome | None]:
        """One outcome for each credit, durable on return; None for an order that is to come again later.

        Raises MessagesWithdrawn when the orders are no longer this consumer's; some may be credited then, which changes nothing.
        """
        outcomes: list[CreditOutcome | None] = [None] * len(credits)
        parts = deque([_Part(0, len(credits))])
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
        self, part: _Part, credits: Sequence[Credit], held: HeldBatch, context: ConsumeContext
    ) -> "list[CreditOutcome | None] | _Failure":
        """A stopping consumer waits for what is under way, but not for orders that are held."""
        passed = self.holds.passed
        try:
            outcomes = self.crediting.credit(
                credits[part.begin : part.end],
                is_again=part.is_unanswered,
                is_given_up=lambda: held.is_held and context.is_withdrawn,
            )
        except CreditingUnavailable as error:
            return _Failure(part.unanswered(), Fault.OUTAGE, str(error))
        except CreditingFailed as error:
            others_pass = part.passed_before is not None and passed > part.passed_before
            return _Failure(part.suspected(self.holds.passed), Fault.SUSPECT, str(error), others_pass)
        self.holds.has_passed()
        return outcomes

    def _pause(self, context: ConsumeContext, seconds: float) -> None:
        """Ends early when a task passes: that tells all threads that it works again."""
        passed = self.holds.passed
        while seconds > 0 and self.holds.passed == passed:
            self.wait(context, min(seconds, _SLICE_S))
            seconds -= _SLICE_S

    def _step_after(self, failure: _Failure, context: ConsumeContext) -> Step:
        step = next_step(
            failure.fault,
            orders=failure.part.orders,
            tries=failure.part.tries,
            others_pass=failure.others_pass,
            is_in_the_way=self.holds.suspected >= self.threads,
        )
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


def _what_is_left(step: Step, failure: _Failure, credits: Sequence[Credit]) -> tuple[_Part, ...]:
    """The parts that are to be tried further."""
    part, reason = failure.part, failure.reason
    if step is Step.SPLIT:
        logger.warning("a task with %d orders failed, and each half is tried alone: %s", part.orders, reason)
        return part.halves()
    if step is Step.GIVE_BACK:
        order_id = credits[part.begin].order_id
        logger.error("order %s comes again later: its task fails while those of other orders succeed: %s", order_id, reason)
        return ()
    return (part,)
