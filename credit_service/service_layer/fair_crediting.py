"""Credits a batch. Refuses an order only if the database accepts other orders; see `service_runtime.failing.refusals`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import Credited, Later
from credit_service.service_layer.patient_crediting import PatientCrediting
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext
from service_runtime.failing.holds import HeldBatch
from service_runtime.failing.refusals import Doubts, RefusalVerdict

_REASON: Final = "the credit database refuses them (the workers' log says why), and has taken no other order since"


@dataclass(frozen=True, slots=True)
class FairCrediting:
    """Credits batches with retries of refused orders (`service_layer.order_listener.BatchCrediting`)."""

    patient: PatientCrediting
    doubts: Doubts

    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[Credited]:
        """Returns the outcome of each credit. IMPOSSIBLE means that the order itself is the cause. Raises MessagesWithdrawn."""
        outcomes = self.patient.credit(credits, context)

        def try_again(positions: Sequence[int], held: HeldBatch) -> list[int]:
            answers = self.patient.credit([credits[position] for position in positions], context, held)
            for position, outcome in zip(positions, answers, strict=True):
                outcomes[position] = outcome
            return _refused(outcomes, positions)

        for kind in EntryKind:
            of_kind = [position for position in _refused(outcomes, range(len(credits))) if credits[position].kind is kind]
            if not of_kind:
                continue
            pause = partial(self.patient.wait, context)
            for position, verdict in self.doubts.settle(of_kind, kind, _REASON, try_again, pause).items():
                if verdict is RefusalVerdict.GIVES_WAY:
                    outcomes[position] = Later.GAVE_WAY
        return outcomes


def _refused(outcomes: Sequence[Credited], positions: Sequence[int]) -> list[int]:
    return [position for position in positions if outcomes[position] is CreditOutcome.IMPOSSIBLE]
