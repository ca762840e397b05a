"""The kinds of faults in a simulation."""

from __future__ import annotations

from enum import StrEnum

from rocketmq_broker.testing.simulation.databases import kinds


class FaultKind(StrEnum):
    """A kind of fault. `where` in a plan is the name of its target: a process, a link "FROM>TO", a database or "redis".

    The names of the databases are "orders-database", "credits-database" and "inventory-database". In the descriptions, `for_s`
    and other parameters are the fields of a fault in a plan.
    """

    PROCESS_KILL = "process.kill"
    """The process is killed at `at_s` and restarts after `for_s`."""
    PROCESS_KILL_AT_DISK = "process.kill_at_disk"
    """The process is killed at its `nth` disk operation after `at_s`, and restarts after `for_s`."""
    PROCESS_KILL_AT_DATABASE = kinds.KILL_AT_DATABASE
    """The process is killed at its `nth` database statement after `at_s`. `when` is "before" or "after" the statement."""
    PROCESS_KILL_AT_FRAME = "process.kill_at_frame"
    """The process is killed at the `nth` frame that it sends after `at_s`. `when` is "before" or "after" the frame."""
    PROCESS_FREEZE = "process.freeze"
    """The process is paused for `for_s`, and then continues."""
    MACHINE_POWER = "machine.power"
    """The process's machine loses power and unsynced data, which may be torn. It restarts after `for_s`."""

    NETWORK_CUT = "network.cut"
    """The link's connections break at `at_s`. Clients can reconnect immediately."""
    NETWORK_CUT_HALF_WAY = "network.cut_half_way"
    """The `nth` frame of the link after `at_s` is truncated, and its connection breaks."""
    NETWORK_BLOCK = "network.block"
    """The link loses everything from FROM to TO for `for_s`. The other direction works."""
    NETWORK_PARTITION = "network.partition"
    """The link loses everything in both directions for `for_s`."""
    NETWORK_ISOLATE = "network.isolate"
    """The process is disconnected from all others for `for_s`."""
    NETWORK_LOSE_FRAMES = "network.lose_frames"
    """The link loses the next `count` frames. Connections remain open."""
    NETWORK_SLOW = "network.slow"
    """Each frame of the link is delayed by up to `delay_s` for `for_s`."""
    NETWORK_IN_PIECES = "network.in_pieces"
    """The link delivers single bytes for `for_s`."""

    CLOCK_LEAP = "clock.leap"
    """The process's wall clock jumps by `by_s` seconds, which may be negative, and jumps back after `for_s`."""
    CLOCK_STOP = "clock.stop"
    """The process's wall clock stops for `for_s`, and then shows the right time."""
    CLOCK_RATE = "clock.rate"
    """The process's wall clock runs at `rate` times the right speed for `for_s`, and then shows the right time."""

    DISK_FULL = "disk.full"
    """The disk of the process is full for `for_s`."""
    DISK_SLOW = "disk.slow"
    """Each sync on the process's disk takes up to `delay_s` longer for `for_s`."""
    DISK_FAIL_WRITES = "disk.fail_writes"
    """The next `count` writes on the disk of the process fail."""
    DISK_FAIL_SYNCS = "disk.fail_syncs"
    """The next `count` syncs on the disk of the process fail."""

    DATABASE_REFUSE = kinds.REFUSE
    """The database refuses statements with the probability `rate` for `for_s`."""
    DATABASE_HANG = kinds.HANG
    """The database does not answer for `for_s`, and then continues."""
    DATABASE_LOST_ANSWER = kinds.LOST_ANSWER
    """The database stores the `nth` database commit after `at_s`, and its answer is lost with the connection."""
    DATABASE_LOCKED = kinds.LOCKED
    """Another writer holds the lock of the database for `for_s`."""
    DATABASE_RULE = "database.rule"
    """A rule of the database refuses the `nth` order after `at_s` for `for_s`.

    `about` is "rows" to refuse all rows of the order, and "amounts" to accept rows with the amount 0.
    """

    REDIS_HANG = "redis.hang"
    """Redis does not answer for `for_s`, and then continues."""
    REDIS_AWAY = "redis.away"
    """Redis stops at `at_s`, loses all tasks, and restarts after `for_s`."""
    REDIS_LOSE_TASK = "redis.lose_task"
    """Redis loses the `nth` task after `at_s`."""
    REDIS_DOUBLE_TASK = "redis.double_task"
    """The `nth` task after `at_s` is delivered a second time, `delay_s` later."""
    REDIS_LATE_TASK = "redis.late_task"
    """The `nth` task after `at_s` is delayed by `delay_s`."""
    WORKER_KILL_CHILD = "worker.kill_child"
    """A process of the worker's pool is killed at the `nth` database statement of the pool after `at_s`. The worker survives.

    `when` is "before" or "after" the statement.
    """
    WORKER_FAIL_ORDER = "worker.fail_order"
    """Each attempt to credit the `nth` order after `at_s` fails for `for_s`, "before" or "after" writing entries (`when`).

    `how` is "raises" if an attempt raises an error, "dies" if it ends its process, and "hangs" if it does not end.
    """

    REPLICA_OLD_ROWS = "replica.old_rows"
    """The order service answers check-backs from a copy of its database, made at `at_s`.

    The service uses the copy for `for_s`, beginning `age_s` (at most 30 s) after it was made.
    """
    MEMBER_OLD = "member.old"
    """The order service is stopped at `at_s` and restarts after `for_s`. The other members of its group are then older."""
    OUTAGE = "outage"
    """The process is killed at `at_s` and restarts after `for_s`, which is 20 minutes to an hour."""
