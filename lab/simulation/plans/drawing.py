"""Draws the plan of a seed at random: the simulation's settings, its customers' actions and its faults."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lab.simulation.action_kinds import ActionKind
from lab.simulation.plans.chains import chain_of, with_common_keys
from lab.simulation.plans.fault_table import FAULTS, OUTAGE, parts_of
from lab.simulation.shapes import WorldShape
from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.fault_rows import drawn_faults, possible
from rocketmq_broker.testing.simulation.plan import Plan, PlannedEvent
from rocketmq_broker.world import Chance

CUSTOMERS: Final = ("ana", "ben", "chi", "dan", "eve", "fay", "gus", "hal")
ARTICLES: Final = ("pen", "ink", "paper", "lamp", "desk", "chair")


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a simulation: its customers' orders, the time in which they act, and its faults."""

    orders: Sequence[tuple[int, int]]
    """Pairs of a minimum and a maximum number of orders. A simulation draws one pair."""
    acting_s: tuple[float, float]
    """The minimum and maximum duration in seconds of the customers' actions."""
    faults: Sequence[tuple[int, int]]
    """Pairs of a minimum and a maximum number of faults. A simulation with faults draws one pair."""


_SMALL: Final = _Size((*(6 * ((2, 4),)), *(2 * ((4, 8),)), (8, 20)), (8.0, 60.0), ((1, 3), (2, 6), (2, 6), (6, 12)))
"""Small simulations take less time, and more of their faults hit the same order."""
_LARGE: Final = _Size(((20, 60),), (60.0, 240.0), ((1, 4), (4, 12), (4, 12), (12, 24)))
"""Large simulations have more messages in the same files and batches, and broker restarts with older transactions."""
_LARGE_EVERY: Final = 10
"""A simulation is large if its seed is a multiple of this number."""
_KIND_IS_USED: Final = 0.5
_WITHOUT_FAULTS: Final = 0.02
_OUTAGE: Final = 0.02
_NEAR_A_FAULT: Final = 0.3
_AT_THE_SAME_PLACE: Final = 0.6
_NEAR_AN_ACTION: Final = 0.35
_SOON_S: Final = 2.0


def plan_of(seed: int) -> Plan:
    """Returns the plan of a seed, which is the same in each call and each interpreter."""
    shape, size = shape_of(stream(seed, "plan", "shape")), _size_of(seed)
    acting_s = round(stream(seed, "plan", "acting").uniform(*size.acting_s), 3)
    chain = chain_of(seed)
    if chain is not None:
        shape = chain.shape_from(shape, stream(seed, "plan", "chain", "shape"))
    actions = list(_actions(seed, shape, size, acting_s))
    if chain is None:
        events = [*actions, *_faults(seed, shape, size, actions, acting_s)]
    else:
        events = [*with_common_keys(actions), *chain.events(stream(seed, "plan", "chain", "events"), parts_of(shape), actions)]
    ends_s = max([acting_s, *(event.ends_s for event in events)])
    return Plan(seed, shape.as_settings(), (), round(ends_s, 3)).with_events(events)


def _size_of(seed: int) -> _Size:
    return _SMALL if seed % _LARGE_EVERY else _LARGE


def shape_of(chance: Chance) -> WorldShape:
    """Draws the settings of a simulation. An unpaid order expires before its half message is discarded."""
    check_interval_s = float(chance.choice((3, 5, 10, 20)))
    check_immunity_s = float(chance.choice((2, 6, 12)))
    check_max = chance.choice((6, 10, 15))
    patience_s = check_immunity_s + (check_max - 2) * check_interval_s
    return WorldShape(
        brokers=chance.choice((1, 1, 2)),
        order_services=chance.choice((1, 1, 2, 3)),
        credit_services=chance.choice((1, 1, 2, 3)),
        workers=chance.choice((1, 1, 2, 4)),
        drain_batch=chance.choice((1, 2, 8, 256)),
        max_tries=chance.choice((2, 3, 5, 16)),
        cancels_refused=chance.random() < 0.75,
        saves_positions=chance.random() < 0.3,
        has_inventory=chance.random() < 0.5,
        flush_sync=chance.random() < 0.7,
        check_interval_s=check_interval_s,
        check_immunity_s=check_immunity_s,
        check_max=check_max,
        payment_deadline_s=float(min(chance.choice((10, 20, 40, 60)), int(patience_s))),
        order_limit_cents=chance.choice((100_000, 1_000_000)),
    )


@dataclass(frozen=True, slots=True)
class _Mix:
    """The probabilities of the customers' actions in a simulation."""

    with_key: float
    with_several_items: float
    too_dear: float
    paid_later: float
    repeated: float
    cancelled: float
    forgotten: float

    @classmethod
    def drawn(cls, chance: Chance) -> "_Mix":
        return cls(
            with_key=chance.choice((0.5, 0.8, 1.0)),
            with_several_items=chance.choice((0.0, 0.4, 0.8)),
            too_dear=chance.choice((0.0, 0.05, 0.2)),
            paid_later=chance.choice((0.0, 0.2, 0.5)),
            repeated=chance.choice((0.1, 0.3, 0.6)),
            cancelled=chance.choice((0.0, 0.15, 0.4)),
            forgotten=chance.choice((0.1, 0.3, 0.9)),
        )


def _actions(seed: int, shape: WorldShape, size: _Size, acting_s: float) -> Iterator[PlannedEvent]:
    chance = stream(seed, "plan", "customers")
    mix, is_in_bursts = _Mix.drawn(chance), chance.random() < 0.3
    customers = CUSTOMERS[: chance.randint(2, len(CUSTOMERS))]
    bursts = [chance.uniform(0, acting_s) for _ in range(chance.randint(2, 6))]
    for order in range(1, chance.randint(*chance.choice(size.orders)) + 1):
        own = stream(seed, "plan", "order", order)
        at_s = own.choice(bursts) + own.uniform(0, 3) if is_in_bursts else own.uniform(0, acting_s)
        yield from _one_order(own, mix, shape, order, own.choice(customers), round(min(at_s, acting_s), 3))


def _one_order(chance: Chance, mix: _Mix, shape: WorldShape, order: int, who: str, at_s: float) -> Iterator[PlannedEvent]:
    """Yields the action that places an order, and its customer's later actions."""
    has_key, is_paid_later = chance.random() < mix.with_key, chance.random() < mix.paid_later
    key = f"{who}-{order}" if has_key else None
    placing: dict[str, Any] = {"order": order, "items": _items(chance, mix, shape), "key": key, "pays_later": is_paid_later}
    if chance.random() < mix.forgotten:
        placing["tries"] = chance.choice((1, 1, 2))
    yield PlannedEvent(at_s, ActionKind.PLACE, who, parameters=placing)

    def later(what: ActionKind, within_s: float) -> PlannedEvent:
        return PlannedEvent(round(at_s + chance.uniform(0, within_s), 3), what, who, parameters={"order": order})

    if has_key and chance.random() < mix.repeated:
        for _ in range(chance.choice((1, 1, 2, 3))):
            yield later(ActionKind.PLACE_AGAIN, chance.choice((0.05, 1, 20)))
    if is_paid_later and chance.random() < 0.65:
        yield later(ActionKind.PAY, shape.payment_deadline_s * 1.1)
    if chance.random() < (0.25 if is_paid_later else mix.cancelled):
        for _ in range(chance.choice((1, 1, 1, 2))):
            yield later(ActionKind.CANCEL, chance.choice((1, 10, 60)))


def _items(chance: Chance, mix: _Mix, shape: WorldShape) -> list[list[str | int]]:
    count = chance.randint(2, 4) if chance.random() < mix.with_several_items else 1
    items: list[list[str | int]] = [
        [article, chance.randint(1, 3), chance.randint(1, 50) * 100] for article in chance.sample(ARTICLES, count)
    ]
    if chance.random() < mix.too_dear:
        items[0][2] = shape.order_limit_cents + 1
    return items


def _faults(seed: int, shape: WorldShape, size: _Size, actions: Sequence[PlannedEvent], acting_s: float) -> list[PlannedEvent]:
    """Draws the faults.

    A simulation has only some kinds of faults, so that each kind occurs more often and fewer faults hide others.

    A fault often starts soon after the start or end of another fault and at the same target, because some bugs need two faults.
    """

    def begin(chance: Chance, targets: Sequence[str], earlier: Sequence[PlannedEvent]) -> tuple[float, Sequence[str]]:
        lot = chance.random()
        at_s = chance.uniform(0, acting_s)
        if earlier and lot < _NEAR_A_FAULT:
            other = chance.choice(earlier)
            at_s = chance.choice((other.at_s, min(other.ends_s, acting_s))) + chance.uniform(0, _SOON_S)
            if chance.random() < _AT_THE_SAME_PLACE and other.where in targets:
                targets = (other.where,)
        elif lot > 1 - _NEAR_AN_ACTION:
            at_s = max(0.0, chance.choice(actions).at_s + chance.uniform(-_SOON_S, _SOON_S))
        return at_s, targets

    chance, parts = stream(seed, "plan", "faults"), parts_of(shape)
    rows = possible(FAULTS, parts)
    used = {kind: row for kind, row in rows.items() if chance.random() < _KIND_IS_USED} or rows
    count = 0 if chance.random() < _WITHOUT_FAULTS else chance.randint(*chance.choice(size.faults))
    faults = drawn_faults(seed, count, used, parts, begin)
    if chance.random() < _OUTAGE:
        faults.append(FAULTS[OUTAGE].planned(OUTAGE, stream(seed, "plan", "outage"), parts, begin, faults))
    return faults
