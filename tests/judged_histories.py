"""A short history of a shop without a fault, for the tests of lab.judged."""

from dataclasses import dataclass, field, replace
from typing import Final

from lab.judged.observations import (
    Interval,
    Observed,
    ObservedConsumption,
    ObservedCredits,
    ObservedEnd,
    ObservedPull,
    ObservedRequest,
    ObservedState,
)

QUEUE: Final = "broker-a/orders/0"
NO_RESPONSE: Final = None


def at(call: int, returned: int | None = None) -> Interval:
    """Returns an interval of these times; from `call` to one unit later without the other."""
    return Interval(call, call + 1 if returned is None else returned)


@dataclass(slots=True)
class ShortHistory:
    """Two orders that are placed, delivered and credited, one after the other, and an order that is cancelled."""

    observed: list[Observed] = field(
        default_factory=lambda: [
            ObservedRequest("one", "place", at(0), 201, "A"),
            ObservedPull(QUEUE, 0, at(2), ((0, "A"),)),
            ObservedState("A", at(4), "COMMITTED"),
            ObservedConsumption(QUEUE, 0, "A", at(4), is_success=False),
            ObservedConsumption(QUEUE, 0, "A", at(6), is_success=True),
            ObservedCredits("A", 0, at(3), 1, at(7)),
            ObservedRequest("two", "place", at(10), NO_RESPONSE),
            ObservedRequest("two", "place", at(12), 503),
            ObservedRequest("two", "place", at(14), 201, "B"),
            ObservedPull(QUEUE, 1, at(16), ((1, "B"),)),
            ObservedConsumption(QUEUE, 0, "A", at(16), is_success=True),
            ObservedConsumption(QUEUE, 1, "B", at(18), is_success=True),
            ObservedCredits("B", 0, at(15), 1, at(19)),
            ObservedRequest("three", "place later", at(20), 201, "C"),
            ObservedState("C", at(22), "PENDING"),
            ObservedRequest("three", "cancel", at(24), NO_RESPONSE, ""),
            ObservedRequest("three", "cancel", at(26), 200, "C"),
            ObservedRequest("four", "place too much", at(28), 409),
            ObservedPull(QUEUE, 0, at(30), ((0, "A"), (1, "B"))),
            ObservedPull(QUEUE, 2, at(32), ()),
        ]
    )
    end: ObservedEnd = field(
        default_factory=lambda: ObservedEnd(at(40), {"A": "one", "B": "two", "C": "three"}, {"A": 1, "B": 1}, {QUEUE: ("A", "B")})
    )

    def change(self, before: Observed, after: Observed) -> None:
        """Puts an observation in the place of another one."""
        self.observed[self.observed.index(before)] = after

    def end_with(self, **changes: object) -> None:
        """Changes what was observed at the end."""
        self.end = replace(self.end, **changes)  # type: ignore[arg-type]
