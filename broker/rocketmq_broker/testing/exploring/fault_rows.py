"""Defines the faults injected into explored worlds (simulated runs): the targets, duration and parameters of each kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from rocketmq_broker.testing.simulation.databases.kinds import HANG, KILL_AT_DATABASE, LOCKED, LOST_ANSWER, REFUSE
from rocketmq_broker.world import Chance

AT_POINT: Final = "process.kill_at_point"
"""The kind of fault that kills a program at the `nth` crash point passed after `at_s`, and restarts it after `for_s` seconds."""
AT_DECISION: Final = "process.kill_at_decision"
"""The kind of fault that kills a program before it sends its `nth` COMMIT or ROLLBACK after `at_s`."""
CALL_FAILS: Final = "call.fails"
"""The kind of fault that makes the `nth` call of `may_fail` in a program after `at_s` raise its error."""
CALL_LOST: Final = "call.lost"
"""The kind of fault that loses the `nth` call of a remote function after `at_s`."""
RESPONSE_LOST: Final = "call.response_lost"
"""The kind of fault that loses the response to the `nth` call of a remote function. The function is executed."""
CALL_DOUBLED: Final = "call.doubled"
"""The kind of fault that executes the `nth` call of a remote function a second time, `delay_s` later."""
CALL_LATE: Final = "call.late"
"""The kind of fault that delays the `nth` call of a remote function by `delay_s`."""
BROKER: Final = "broker"
NAME_SERVER: Final = "names"

Values: TypeAlias = tuple[float, float] | tuple[int, int] | Sequence[str]
"""The minimum and maximum of a number, or the strings to choose from. Integer limits give integers."""


@dataclass(frozen=True, slots=True)
class Places:
    """The names that faults can hit in a world, in addition to broker and name server."""

    programs: Sequence[str]
    databases: Sequence[str] = ()
    functions: Sequence[str] = ()


class Hits(Enum):
    """The possible targets of a kind of fault."""

    PROGRAM = auto()
    PROGRAM_OR_BROKER = auto()
    ANY = auto()
    BROKER = auto()
    LINK = auto()
    DATABASE = auto()
    USER_OF_DATABASE = auto()
    FUNCTION = auto()

    def targets(self, places: Places) -> Sequence[str]:
        """Returns the possible targets in a world. Programs are listed twice to be chosen more often than servers.

        Without a target, the fault does not occur in this world.
        """
        programs = places.programs
        if self is Hits.DATABASE:
            return places.databases
        if self is Hits.FUNCTION:
            return places.functions
        if self is Hits.USER_OF_DATABASE:
            return programs if places.databases else ()
        if self is Hits.LINK:
            pairs = [*((name, BROKER) for name in programs), *((name, NAME_SERVER) for name in (*programs, BROKER))]
            return [f"{one}>{other}" for pair in pairs for one, other in (pair, pair[::-1])]
        own = [] if self is Hits.BROKER else [*programs, *programs]
        brokers = [] if self is Hits.PROGRAM else [BROKER]
        return [*own, *brokers, *([NAME_SERVER] if self is Hits.ANY else [])]


@dataclass(frozen=True, slots=True)
class ExploredFault:
    """A kind of fault, with its targets, duration, parameters and relative frequency."""

    hits: Hits
    lasts_s: tuple[float, float] | None = None
    """The range of the fault's duration in seconds; None for a fault without duration."""
    parameters: Mapping[str, Values] = field(default_factory=dict)
    share: float = 1.0
    """The relative frequency of the fault; 1.0 is the normal frequency."""


_DOWN: Final = (0.1, 20.0)
_SOON: Final = {"nth": (1, 8)}

FAULTS: Final[Mapping[str, ExploredFault]] = {
    "process.kill": ExploredFault(Hits.ANY, _DOWN, share=5),
    "process.kill_at_frame": ExploredFault(Hits.PROGRAM_OR_BROKER, _DOWN, {**_SOON, "when": ("before", "after")}, share=7),
    AT_POINT: ExploredFault(Hits.PROGRAM, _DOWN, {"nth": (1, 6)}, share=3),
    AT_DECISION: ExploredFault(Hits.PROGRAM, _DOWN, {"nth": (1, 2)}, share=3),
    CALL_FAILS: ExploredFault(Hits.PROGRAM, None, {"nth": (1, 6)}, share=2),
    "process.kill_at_disk": ExploredFault(Hits.BROKER, _DOWN, {"nth": (1, 30)}),
    "process.freeze": ExploredFault(Hits.ANY, (0.1, 40.0)),
    "machine.power": ExploredFault(Hits.PROGRAM_OR_BROKER, _DOWN, share=2),
    "network.cut": ExploredFault(Hits.LINK),
    "network.cut_half_way": ExploredFault(Hits.LINK, None, _SOON),
    "network.block": ExploredFault(Hits.LINK, (0.5, 40.0)),
    "network.isolate": ExploredFault(Hits.ANY, (0.5, 40.0)),
    "network.lose_frames": ExploredFault(Hits.LINK, None, {"count": (1, 6)}, share=2),
    "network.slow": ExploredFault(Hits.LINK, (1.0, 30.0), {"delay_s": (0.05, 5.0)}),
    "network.in_pieces": ExploredFault(Hits.LINK, (0.5, 10.0), share=0.5),
    "clock.leap": ExploredFault(Hits.PROGRAM_OR_BROKER, (1.0, 60.0), {"by_s": (-3600.0, 3600.0)}),
    "clock.rate": ExploredFault(Hits.PROGRAM_OR_BROKER, (1.0, 60.0), {"rate": (0.2, 10.0)}, share=0.5),
    "disk.full": ExploredFault(Hits.BROKER, (0.5, 20.0), share=0.5),
    "disk.slow": ExploredFault(Hits.BROKER, (1.0, 30.0), {"delay_s": (0.01, 1.0)}, share=0.5),
    REFUSE: ExploredFault(Hits.DATABASE, (0.5, 40.0), {"rate": (0.1, 1.0)}, share=2),
    HANG: ExploredFault(Hits.DATABASE, (0.5, 40.0)),
    LOST_ANSWER: ExploredFault(Hits.DATABASE, None, _SOON, share=3),
    LOCKED: ExploredFault(Hits.DATABASE, (0.5, 20.0)),
    KILL_AT_DATABASE: ExploredFault(Hits.USER_OF_DATABASE, _DOWN, {"nth": (1, 20), "when": ("before", "after")}, share=6),
    CALL_LOST: ExploredFault(Hits.FUNCTION, None, _SOON, share=2),
    RESPONSE_LOST: ExploredFault(Hits.FUNCTION, None, _SOON, share=2),
    CALL_DOUBLED: ExploredFault(Hits.FUNCTION, None, {**_SOON, "delay_s": (0.01, 20.0)}, share=2),
    CALL_LATE: ExploredFault(Hits.FUNCTION, None, {**_SOON, "delay_s": (0.1, 20.0)}, share=2),
}


def drawn(values: Values, chance: Chance) -> Any:
    """Draws a string or a number. Numbers are log-uniform if the minimum is positive, otherwise uniform."""
    low, high = values[0], values[-1]
    if isinstance(low, str) or isinstance(high, str):
        return chance.choice(values)
    if isinstance(low, int) and isinstance(high, int):
        return int(math.exp(chance.uniform(math.log(low), math.log(high + 1))))
    if low <= 0:
        return round(chance.uniform(low, high), 3)
    return round(math.exp(chance.uniform(math.log(low), math.log(high))), 3)
