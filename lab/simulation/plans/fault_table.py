"""The table of faults that the search uses. `where` in a plan is a process, a link "FROM>TO", a database or "redis".

`rocketmq_broker.testing.simulation.faults` and `.databases.kinds` describe the kinds that all worlds have.
"""

from collections.abc import Mapping
from typing import Any, Final

from lab.simulation.shapes import NAME_SERVER, REDIS, WorldShape
from rocketmq_broker.testing.simulation.databases import kinds
from rocketmq_broker.testing.simulation.fault_rows import BEFORE_OR_AFTER, FaultRow, Parts, drawn
from rocketmq_broker.world import Chance

OUTAGE: Final = "outage"
"""The process is killed at `at_s` and restarts after `for_s`, which is 20 minutes to an hour."""
DATABASE_RULE: Final = "database.rule"
"""A rule of the database refuses the `nth` order after `at_s` for `for_s`.

`about` is "rows" to refuse all rows of the order, and "amounts" to accept rows with the amount 0.
"""
REDIS_HANG: Final = "redis.hang"
"""Redis does not answer for `for_s`, and then continues."""
REDIS_AWAY: Final = "redis.away"
"""Redis stops at `at_s`, loses all tasks, and restarts after `for_s`."""
REDIS_LOSE_TASK: Final = "redis.lose_task"
"""Redis loses the `nth` task after `at_s`."""
REDIS_DOUBLE_TASK: Final = "redis.double_task"
"""The `nth` task after `at_s` is delivered a second time, `delay_s` later."""
REDIS_LATE_TASK: Final = "redis.late_task"
"""The `nth` task after `at_s` is delayed by `delay_s`."""
WORKER_KILL_CHILD: Final = "worker.kill_child"
"""A process of the worker's pool is killed at the `nth` database statement of the pool after `at_s`. The worker survives.

`when` is "before" or "after" the statement.
"""
WORKER_FAIL_ORDER: Final = "worker.fail_order"
"""Each attempt to credit the `nth` order after `at_s` fails for `for_s`, "before" or "after" writing entries (`when`).

`how` is "raises" if an attempt raises an error, "dies" if it ends its process, and "hangs" if it does not end.
"""
REPLICA_OLD_ROWS: Final = "replica.old_rows"
"""The order service answers check-backs from a copy of its database, made at `at_s`.

The service uses the copy for `for_s`, beginning `age_s` (at most 30 s) after it was made.
"""
REPLICA_PROMOTED: Final = "replica.promoted"
"""Like `replica.old_rows`, but the copy accepts writes. It is used only for half messages that were sent after `age_s`."""
WORKER_NEVER_CREDIT: Final = "worker.never_credit"
"""Like `worker.fail_order`, but without end: the order must be refused or parked. While it waits, customers place more orders."""
LISTENER_FAIL: Final = "listener.fail"
"""The listener of a service fails for `for_s`. `how` is "raises" if it raises an error, "later" if it requests a redelivery."""

_PROCESSES: Final = "names brokers services workers"
_NOT_NAMES: Final = "brokers services workers"
_WITH_DATABASE: Final = "services workers"
_BUSY_LINKS: Final = 3
"""The weight of links to a broker relative to links to the name server, which are idle for 30 s at a time."""
_DOWN: Final = (0.1, 40.0)
_NTH_TASK: Final = {"nth": (1, 3)}


def parts_of(shape: WorldShape) -> Parts:
    """Returns the parts of a world that faults can hit."""
    pairs = _BUSY_LINKS * [(client, server) for client in shape.service_names for server in shape.broker_names]
    pairs += [(client, NAME_SERVER) for client in (*shape.service_names, *shape.broker_names)]
    return {
        "names": (NAME_SERVER,),
        "brokers": shape.broker_names,
        "orders": shape.order_service_names,
        "credits": shape.credit_service_names,
        "services": shape.service_names,
        "workers": shape.worker_names,
        "links": tuple(f"{one}>{other}" for pair in pairs for one, other in (pair, pair[::-1])),
        "databases": shape.database_names,
        "redis": (REDIS,),
    }


def _leap(chance: Chance) -> Any:
    return drawn((0.5, 7200.0), chance) * chance.choice((1, -1))


FAULTS: Final[Mapping[str, FaultRow]] = {
    "process.kill": FaultRow(_PROCESSES, _DOWN, share=2.0),
    "process.kill_at_disk": FaultRow("brokers", _DOWN, {"nth": (1, 60)}, 2.5),
    kinds.KILL_AT_DATABASE: FaultRow(_WITH_DATABASE, _DOWN, {"nth": (1, 30), "when": BEFORE_OR_AFTER}, 2.0),
    "process.kill_at_frame": FaultRow("brokers services", _DOWN, {"nth": (1, 60), "when": BEFORE_OR_AFTER}, 1.5),
    "process.freeze": FaultRow(_PROCESSES, (0.05, 90.0), share=1.6),
    # Other machines have no data on their disks.
    "machine.power": FaultRow("brokers brokers brokers services workers", _DOWN, share=2.5),
    "network.cut": FaultRow("links", share=1.5),
    "network.cut_half_way": FaultRow("links", None, {"nth": (1, 40)}, 1.5),
    "network.block": FaultRow("links", (0.5, 60.0), share=2.0),
    "network.partition": FaultRow("links", (0.5, 60.0), share=2.5),
    "network.isolate": FaultRow("names brokers services", (0.5, 60.0), share=1.7),
    "network.lose_frames": FaultRow("links", None, {"count": (1, 8)}, 1.5),
    "network.slow": FaultRow("links", (1.0, 60.0), {"delay_s": (0.02, 8.0)}, 1.5),
    "network.in_pieces": FaultRow("links", (0.5, 20.0), share=2.3),
    "clock.leap": FaultRow(_NOT_NAMES, (1.0, 100.0), {"by_s": _leap}, 2.2),
    "clock.stop": FaultRow(_NOT_NAMES, (1.0, 60.0), share=2.0),
    "clock.rate": FaultRow(_NOT_NAMES, (5.0, 100.0), {"rate": (0.2, 20.0)}, 1.8),
    "disk.full": FaultRow("brokers", (1.0, 60.0), share=2.0),
    "disk.slow": FaultRow("brokers", (1.0, 60.0), {"delay_s": (0.02, 20.0)}, 2.5),
    "disk.fail_writes": FaultRow("brokers", None, {"count": (1, 4)}, 2.0),
    "disk.fail_syncs": FaultRow("brokers", None, {"count": (1, 3)}, 1.5),
    kinds.REFUSE: FaultRow("databases", (0.5, 120.0), {"rate": (0.1, 0.5, 1.0)}, 2.0),
    kinds.HANG: FaultRow("databases", (0.5, 120.0), share=2.0),
    kinds.LOST_ANSWER: FaultRow("databases", None, {"nth": (1, 8)}, 2.0),
    kinds.LOCKED: FaultRow("databases", (0.5, 120.0), share=2.5),
    DATABASE_RULE: FaultRow("databases", (5.0, 120.0), {"nth": (1, 6), "about": ("rows", "amounts")}, 2.5),
    REDIS_HANG: FaultRow("redis", (0.5, 120.0), share=2.0),
    REDIS_AWAY: FaultRow("redis", (0.5, 120.0), share=2.0),
    REDIS_LOSE_TASK: FaultRow("redis", None, _NTH_TASK, 1.9),
    REDIS_DOUBLE_TASK: FaultRow("redis", None, {**_NTH_TASK, "delay_s": (0.001, 5.0)}, 2.0),
    REDIS_LATE_TASK: FaultRow("redis", None, {**_NTH_TASK, "delay_s": (0.5, 90.0)}, 2.0),
    WORKER_KILL_CHILD: FaultRow("workers", None, {"nth": (1, 30), "when": BEFORE_OR_AFTER}, 3.0),
    WORKER_FAIL_ORDER: FaultRow(
        "redis", (2.0, 120.0), {"nth": (1, 6), "when": BEFORE_OR_AFTER, "how": ("raises", "raises", "dies", "hangs")}, 4.0
    ),
    REPLICA_OLD_ROWS: FaultRow("orders", (5.0, 90.0), {"age_s": (1.0, 30.0)}, 3.3),
    "member.old": FaultRow("orders", (0.5, 60.0), share=1.5),
    OUTAGE: FaultRow(_NOT_NAMES, (1200.0, 3600.0), share=0.0),
    REPLICA_PROMOTED: FaultRow("orders", (20.0, 90.0), {"age_s": (15.0, 30.0)}, 0.0),
    WORKER_NEVER_CREDIT: FaultRow("redis", None, {"nth": (1, 2), "when": BEFORE_OR_AFTER, "how": ("raises", "dies")}, 0.0),
    LISTENER_FAIL: FaultRow("services", (0.5, 40.0), {"how": ("raises", "later")}, 0.0),
}
"""The table of faults.

Outages have no weight, because an outage takes much of the simulated time. `drawing` adds an outage to a few simulations instead.
The last three occur in chains of faults (`chains`) only.
An outage lasts twenty minutes or more, which exceeds every check-back, wait and timeout, except the longest redelivery of two
hours.
"""
