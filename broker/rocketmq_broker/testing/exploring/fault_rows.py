"""Defines the faults injected into explored worlds (simulated runs): the targets, duration and parameters of each kind."""

from collections.abc import Mapping, Sequence
from typing import Final

from rocketmq_broker.testing.simulation.databases.kinds import HANG, KILL_AT_DATABASE, LOCKED, LOST_ANSWER, REFUSE
from rocketmq_broker.testing.simulation.fault_rows import BEFORE_OR_AFTER, FaultRow, Parts

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


def world_parts(programs: Sequence[str], databases: Sequence[str] = (), functions: Sequence[str] = ()) -> Parts:
    """Returns the parts of a world with these programs, databases and remote functions, a broker and a name server."""
    pairs = [*((name, BROKER) for name in programs), *((name, NAME_SERVER) for name in (*programs, BROKER))]
    return {
        "programs": programs,
        "users": programs if databases else (),
        "broker": [BROKER],
        "names": [NAME_SERVER],
        "links": [f"{one}>{other}" for pair in pairs for one, other in (pair, pair[::-1])],
        "databases": databases,
        "functions": functions,
    }


_PROGRAM: Final = "programs programs"
"""Programs are chosen more often than servers."""
_MACHINE: Final = f"{_PROGRAM} broker"
_PROCESS: Final = f"{_MACHINE} names"
_DOWN: Final = (0.1, 20.0)
_SOON: Final = {"nth": (1, 8)}

FAULTS: Final[Mapping[str, FaultRow]] = {
    "process.kill": FaultRow(_PROCESS, _DOWN, share=5),
    "process.kill_at_frame": FaultRow(_MACHINE, _DOWN, {**_SOON, "when": BEFORE_OR_AFTER}, share=7),
    AT_POINT: FaultRow(_PROGRAM, _DOWN, {"nth": (1, 6)}, share=3),
    AT_DECISION: FaultRow(_PROGRAM, _DOWN, {"nth": (1, 2)}, share=3),
    CALL_FAILS: FaultRow(_PROGRAM, None, {"nth": (1, 6)}, share=2),
    "process.kill_at_disk": FaultRow("broker", _DOWN, {"nth": (1, 30)}),
    "process.freeze": FaultRow(_PROCESS, (0.1, 40.0)),
    "machine.power": FaultRow(_MACHINE, _DOWN, share=2),
    "network.cut": FaultRow("links"),
    "network.cut_half_way": FaultRow("links", None, _SOON),
    "network.block": FaultRow("links", (0.5, 40.0)),
    "network.isolate": FaultRow(_PROCESS, (0.5, 40.0)),
    "network.lose_frames": FaultRow("links", None, {"count": (1, 6)}, share=2),
    "network.slow": FaultRow("links", (1.0, 30.0), {"delay_s": (0.05, 5.0)}),
    "network.in_pieces": FaultRow("links", (0.5, 10.0), share=0.5),
    "clock.leap": FaultRow(_MACHINE, (1.0, 60.0), {"by_s": (-3600.0, 3600.0)}),
    "clock.rate": FaultRow(_MACHINE, (1.0, 60.0), {"rate": (0.2, 10.0)}, share=0.5),
    "disk.full": FaultRow("broker", (0.5, 20.0), share=0.5),
    "disk.slow": FaultRow("broker", (1.0, 30.0), {"delay_s": (0.01, 1.0)}, share=0.5),
    REFUSE: FaultRow("databases", (0.5, 40.0), {"rate": (0.1, 1.0)}, share=2),
    HANG: FaultRow("databases", (0.5, 40.0)),
    LOST_ANSWER: FaultRow("databases", None, _SOON, share=3),
    LOCKED: FaultRow("databases", (0.5, 20.0)),
    KILL_AT_DATABASE: FaultRow("users", _DOWN, {"nth": (1, 20), "when": BEFORE_OR_AFTER}, share=6),
    CALL_LOST: FaultRow("functions", None, _SOON, share=2),
    RESPONSE_LOST: FaultRow("functions", None, _SOON, share=2),
    CALL_DOUBLED: FaultRow("functions", None, {**_SOON, "delay_s": (0.01, 20.0)}, share=2),
    CALL_LATE: FaultRow("functions", None, {**_SOON, "delay_s": (0.1, 20.0)}, share=2),
}
