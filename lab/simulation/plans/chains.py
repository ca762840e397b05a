"""Chains of faults: faults in an order and at intervals in which they show what single faults rarely show.

A simulation whose seed ends with 7 has one chain, and no other faults. It also differs in a few settings: brokers return few
messages for a pull, services wait longer for a response, and customers use the same idempotency keys as other customers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lab.simulation.action_kinds import ActionKind
from lab.simulation.plans.fault_table import FAULTS, LISTENER_FAIL, REPLICA_PROMOTED, WORKER_NEVER_CREDIT
from lab.simulation.shapes import WorldShape
from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.fault_rows import Parts, Values, drawn
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from rocketmq_broker.world import Chance

_LAST_DIGIT: Final = 7
_SHAPE: Final[Mapping[str, Values]] = {"pull_limit": (1, 2, 32), "send_timeout_s": (3.0, 3.0, 10.0)}
_FIRST_ORDER: Final = 101
"""The number of the first order that a chain adds to a plan."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One fault of a chain. It hits the same target as the step before it if its kind can."""

    what: str
    after_s: Values
    """The seconds since the step before it began, or since the order `after_order`."""
    for_s: Values | None = None
    """The duration in seconds. None for the duration in the table of faults."""
    parameters: Mapping[str, Values] = field(default_factory=dict)
    """The parameters that differ from those in the table of faults."""
    hits: str | None = None
    """The group of possible targets. None for the groups in the table of faults."""
    after_order: int = 0
    """The number of an order that the chain adds, or 0."""

    def planned(self, chance: Chance, parts: Parts, from_s: float, before: PlannedEvent | None) -> PlannedEvent:
        """Draws the fault. `from_s` is the time from which `after_s` counts."""
        row = FAULTS[self.what]
        row = replace(
            row, for_s=self.for_s or row.for_s, hits=self.hits or row.hits, parameters={**row.parameters, **self.parameters}
        )

        def begin(chance: Chance, targets: Sequence[str], earlier: Sequence[PlannedEvent]) -> tuple[float, Sequence[str]]:
            same = [name for name in targets if earlier and name == earlier[-1].where]
            return from_s + drawn(self.after_s, chance), same or targets

        return row.planned(self.what, chance, parts, begin, [] if before is None else [before])


@dataclass(frozen=True, slots=True)
class FaultChain:
    """Faults that follow each other, and further orders beside them."""

    steps: tuple[ChainStep, ...]
    orders: int = 0
    """The number of further orders."""
    first_order_s: Values = (0.5, 2.0)
    """The seconds from the first step to the first further order."""
    orders_every_s: Values = (12.0, 25.0)
    """The seconds between further orders."""
    paid_later: float = 0.0
    """The probability that a further order is paid later."""
    paid_within_s: float = 0.0
    """The maximum number of seconds until it is paid."""
    shape: Mapping[str, Values] = field(default_factory=dict)
    """The settings that differ from those of other simulations."""

    def shape_from(self, shape: WorldShape, chance: Chance) -> WorldShape:
        """Draws the settings of a simulation with this chain. `shape` contains the settings that the chain does not change."""
        settings = {name: drawn(values, chance) for name, values in {**_SHAPE, **self.shape}.items()}
        return replace(shape, **settings)

    def events(self, chance: Chance, parts: Parts, actions: Sequence[PlannedEvent]) -> list[PlannedEvent]:
        """Draws the faults and the further orders. The chain begins near an action of a customer."""
        begins_s = max(0.0, chance.choice(actions).at_s + chance.uniform(-2.0, 2.0))
        every_s = drawn(self.orders_every_s, chance)
        orders_s = begins_s + drawn(self.first_order_s, chance)
        orders = [round(orders_s + number * every_s, 3) for number in range(self.orders)]
        faults: list[PlannedEvent] = []
        for step in self.steps:
            from_s = orders[step.after_order - 1] if step.after_order else faults[-1].at_s if faults else begins_s
            faults.append(step.planned(chance, parts, from_s, faults[-1] if faults else None))
        return [*faults, *self._placings(chance, orders)]

    def _placings(self, chance: Chance, orders: Sequence[float]) -> Iterator[PlannedEvent]:
        for number, at_s in enumerate(orders, _FIRST_ORDER):
            is_paid_later = chance.random() < self.paid_later
            placing: dict[str, Any] = {
                "order": number, "items": [["pen", 1, 500]], "key": f"chain-{number}", "pays_later": is_paid_later,
            }  # fmt: skip
            yield PlannedEvent(at_s, ActionKind.PLACE, "ana", parameters=placing)
            if is_paid_later:
                paid_s = round(at_s + chance.uniform(0.5, self.paid_within_s), 3)
                yield PlannedEvent(paid_s, ActionKind.PAY, "ana", parameters={"order": number})


_SHORT: Final = (0.1, 2.0)
_AT_ONCE: Final = (0.1, 0.5)
_FIRST_FIVE: Final = (1, 2, 3, 4, 5)
CHAINS: Final[Mapping[str, FaultChain]] = {
    "power fails while a sync runs": FaultChain(
        (
            ChainStep("disk.slow", (0.1, 1.0), (20.0, 40.0), {"delay_s": (30.0, 60.0)}, after_order=5),
            ChainStep("machine.power", (8.0, 15.0), _SHORT),
        ),
        orders=8,
        orders_every_s=(0.2, 0.8),
        paid_later=0.7,
        paid_within_s=4.0,
        shape={
            "send_timeout_s": (10.0, 10.0, 10.0),
            "check_immunity_s": (2.0, 2.0, 6.0),
            "check_interval_s": (3.0, 3.0, 5.0),
        },
    ),
    "a broker is killed at COMMITs, and then the power fails": FaultChain(
        (
            *(
                ChainStep("process.kill_at_disk", (0.0, 0.001), _AT_ONCE, {"nth": (3, 3, 4)}, "brokers", order)
                for order in _FIRST_FIVE
            ),
            ChainStep("machine.power", (1.5, 5.0), _AT_ONCE),
        ),
        orders=8,
        orders_every_s=(4.0, 6.0),
    ),
    "power fails while messages are delivered again": FaultChain(
        (
            ChainStep(LISTENER_FAIL, (0.1, 1.0), (1.0, 3.0), hits="credits"),
            ChainStep("disk.slow", (7.0, 9.5), (40.0, 60.0), {"delay_s": (20.0, 60.0)}, hits="brokers"),
            ChainStep("machine.power", (4.0, 30.0), _SHORT),
        ),
        orders=4,
        first_order_s=(0.2, 1.0),
        orders_every_s=(0.2, 0.6),
    ),
    "messages are given back while the broker refuses them": FaultChain(
        (ChainStep(LISTENER_FAIL, _SHORT, (2.0, 20.0)), ChainStep("disk.full", _SHORT, (2.0, 20.0), hits="brokers")),
        orders=3,
        orders_every_s=(0.2, 3.0),
    ),
    "check-backs use an old copy of the database": FaultChain(
        (ChainStep(REPLICA_PROMOTED, _SHORT, (60.0, 90.0), {"age_s": (15.0, 16.0)}),),
        orders=5,
        first_order_s=(17.0, 22.0),
        orders_every_s=(2.0, 8.0),
        paid_later=1.0,
        paid_within_s=10.0,
        shape={"order_services": (1, 1, 2)},
    ),
    "an order ends each process that credits it": FaultChain(
        (ChainStep(WORKER_NEVER_CREDIT, _SHORT, None, {"how": ("dies", "dies", "dies")}),),
        orders=4,
        shape={"max_tries": (1, 2, 3), "workers": (1, 1, 1)},
    ),
    "an order is refused while the broker is away": FaultChain(
        (
            ChainStep(WORKER_NEVER_CREDIT, _SHORT, None, {"nth": (1, 1, 1), "how": ("raises", "raises", "raises")}),
            *(ChainStep("process.kill", (0.3, 1.5), (4.0, 8.0), hits="brokers", after_order=order) for order in (2, 3, 4, 5)),
        ),
        orders=5,
        orders_every_s=(15.0, 25.0),
        shape={"brokers": (1, 1, 1), "workers": (1, 1, 1), "max_tries": (1, 1, 2), "cancels_refused": (True, True, True)},
    ),
    "a queue has more messages than a pull": FaultChain(
        (ChainStep("process.kill", _SHORT, (5.0, 20.0), hits="credits"),),
        orders=8,
        orders_every_s=(0.1, 1.0),
        shape={"pull_limit": (1, 2, 3)},
    ),
}
"""The chains, each with a description. Each simulation with a chain draws one of them."""


def chain_of(seed: int) -> FaultChain | None:
    """Returns the chain of a seed, or None."""
    if seed % 10 != _LAST_DIGIT:
        return None
    return stream(seed, "plan", "chain").choice(list(CHAINS.values()))


def with_common_keys(actions: Sequence[PlannedEvent]) -> Iterator[PlannedEvent]:
    """Yields the actions with other idempotency keys: each customer numbers the own orders, and so uses the keys of others."""
    numbers: Counter[str] = Counter()
    for action in actions:
        if action.what == ActionKind.PLACE and action.parameters["key"] is not None:
            numbers[action.where] += 1
            yield PlannedEvent(
                action.at_s,
                action.what,
                action.where,
                action.for_s,
                {**action.parameters, "key": f"order-{numbers[action.where]}"},
            )
        else:
            yield action
