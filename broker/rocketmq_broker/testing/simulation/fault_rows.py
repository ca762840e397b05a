"""Tables of faults: which parts of a world each kind of fault hits, how often, how long and with which parameters.

A plan draws its faults from such a table. A world adds rows for its own kinds of faults.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.plan import PlannedEvent
from rocketmq_broker.world import Chance

Values: TypeAlias = Sequence[Any] | Callable[[Chance], Any]
"""The minimum and maximum of a number, the values to choose from, or a function that draws a value. See `drawn`."""
Parts: TypeAlias = Mapping[str, Sequence[str]]
"""The names of a world's parts by group, such as {"brokers": ["broker-a"], "links": ["shop>broker-a", ...]}."""
Begin: TypeAlias = Callable[[Chance, Sequence[str], Sequence[PlannedEvent]], tuple[float, Sequence[str]]]
"""A function that draws the time of a fault. It receives the possible targets and the earlier faults.

It returns the seconds since the world began, and the targets to choose from.
"""

BEFORE_OR_AFTER: Final[Values] = ("before", "after")


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A kind of fault."""

    hits: str
    """The groups of possible targets, separated by spaces. A group that is named twice is chosen more often."""
    for_s: Values | None = None
    """The duration in seconds. None for a fault without duration."""
    parameters: Mapping[str, Values] = field(default_factory=dict)
    share: float = 1.0
    """The frequency of the kind relative to other kinds. A fault with share 0 occurs only in plans that name it."""

    def targets(self, parts: Parts) -> list[str]:
        """Returns the possible targets. Without a target, the fault cannot occur in this world."""
        return [name for group in self.hits.split() for name in parts[group]]

    def planned(
        self, kind: str, chance: Chance, parts: Parts, begin: Begin, earlier: Sequence[PlannedEvent] = ()
    ) -> PlannedEvent:
        """Draws a fault of this kind."""
        at_s, targets = begin(chance, self.targets(parts), earlier)
        where = chance.choice(targets)
        for_s = 0.0 if self.for_s is None else drawn(self.for_s, chance)
        return PlannedEvent(
            round(at_s, 3), kind, where, for_s, {name: drawn(values, chance) for name, values in self.parameters.items()}
        )


def possible(rows: Mapping[str, FaultRow], parts: Parts) -> dict[str, FaultRow]:
    """Returns the rows that the search may draw in a world with these parts."""
    return {kind: row for kind, row in rows.items() if row.share and row.targets(parts)}


def drawn_faults(seed: int, count: int, rows: Mapping[str, FaultRow], parts: Parts, begin: Begin) -> list[PlannedEvent]:
    """Draws faults of these kinds. Each has its own random stream, so that a plan with more faults begins with the same ones."""
    faults: list[PlannedEvent] = []
    for number in range(count):
        chance = stream(seed, "plan", "fault", number)
        (kind,) = chance.choices(list(rows), [row.share for row in rows.values()])
        faults.append(rows[kind].planned(kind, chance, parts, begin, faults))
    return faults


def drawn(values: Values, chance: Chance) -> Any:
    """Draws a value: log-uniformly between two numbers if the minimum is positive, otherwise uniformly.

    Integer limits give integers; other numbers are rounded to three decimal places. Draws one of three or more values, or of
    strings. Calls a function.
    """
    if callable(values):
        return values(chance)
    low, high = values[0], values[-1]
    if len(values) != 2 or isinstance(low, str):
        return chance.choice(values)
    if isinstance(low, int) and isinstance(high, int):
        return int(math.exp(chance.uniform(math.log(low), math.log(high + 1))))
    if low <= 0:
        return round(chance.uniform(low, high), 3)
    return round(math.exp(chance.uniform(math.log(low), math.log(high))), 3)
