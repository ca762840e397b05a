"""The kinds of faults of the simulated world, each with what it does."""

from __future__ import annotations

from enum import StrEnum


class FaultKind(StrEnum):
    """A kind of fault. `where` in a plan names its target: a process, a link "FROM>TO", a database or "redis".

    Databases and Redis are targets by the names "orders-database", "credits-database", "inventory-database" and "redis".
    """

    PROCESS_KILL = "process.kill"
    """The process dies at `at_s` and loses its memory; it starts again after `for_s`."""
    PROCESS_KILL_AT_DISK = "process.kill_at_disk"
    """As a kill, at the process's `nth` disk operation after `at_s`."""
    PROCESS_KILL_AT_DATABASE = "process.kill_at_database"
    """As a kill, at the process's `nth` database statement after `at_s`, `when` "before" or "after" it."""
    PROCESS_KILL_AT_FRAME = "process.kill_at_frame"
    """As a kill, at the `nth` frame that the process sends after `at_s`, `when` "before" or "after" it."""
    PROCESS_FREEZE = "process.freeze"
    """The process stands still for `for_s`, and goes on with what it was doing."""
    MACHINE_POWER = "machine.power"
    """The machine of the process loses its power: what was not synced is gone, in pieces; it starts again after `for_s`."""

    NETWORK_CUT = "network.cut"
    """The connections of the link break at `at_s`; new ones can be made at once."""
    NETWORK_CUT_HALF_WAY = "network.cut_half_way"
    """The `nth` frame of the link after `at_s` is cut in its middle, and its connection breaks."""
    NETWORK_BLOCK = "network.block"
    """Nothing passes FROM the one TO the other for `for_s`; the other direction works."""
    NETWORK_PARTITION = "network.partition"
    """Nothing passes between the two in either direction for `for_s`."""
    NETWORK_ISOLATE = "network.isolate"
    """Nothing passes to or from the process for `for_s`: it is cut off from all others."""
    NETWORK_LOSE_FRAMES = "network.lose_frames"
    """The link loses the next `count` frames; connections stay."""
    NETWORK_SLOW = "network.slow"
    """Each frame of the link is late by up to `delay_s` for `for_s`."""
    NETWORK_IN_PIECES = "network.in_pieces"
    """The bytes of the link arrive one by one for `for_s`."""

    CLOCK_LEAP = "clock.leap"
    """The wall clock of the process leaps by `by_s` seconds, which may be negative, and leaps back after `for_s`."""
    CLOCK_STOP = "clock.stop"
    """The wall clock of the process stands still for `for_s`, and then shows the right time again."""
    CLOCK_RATE = "clock.rate"
    """The wall clock of the process runs at `rate` times the right speed for `for_s`, and then shows the right time again."""

    DISK_FULL = "disk.full"
    """The disk of the process is full for `for_s`."""
    DISK_SLOW = "disk.slow"
    """Each sync on the disk of the process takes up to `delay_s` longer for `for_s`."""
    DISK_FAIL_WRITES = "disk.fail_writes"
    """The next `count` writes on the disk of the process fail."""
    DISK_FAIL_SYNCS = "disk.fail_syncs"
    """The next `count` syncs on the disk of the process fail."""

    DATABASE_REFUSE = "database.refuse"
    """The database refuses statements with the probability `rate` for `for_s`."""
    DATABASE_HANG = "database.hang"
    """The database answers nothing for `for_s`, and then goes on."""
    DATABASE_LOST_ANSWER = "database.lost_answer"
    """The database stores the `nth` database commit after `at_s`, and its answer is lost with the connection."""
    DATABASE_LOCKED = "database.locked"
    """Another writer holds the lock of the database for `for_s`."""
    DATABASE_RULE = "database.rule"
    """A rule of the database refuses one order for `for_s`: the `nth` one whose rows come after `at_s`.

    `about` is "rows" if it refuses each row of the order, "amounts" if it takes one whose amount is 0.
    """

    REDIS_HANG = "redis.hang"
    """Redis answers nothing for `for_s`, and then goes on."""
    REDIS_LOSE_TASK = "redis.lose_task"
    """Redis loses the `nth` task that it gets after `at_s`."""
    REDIS_DOUBLE_TASK = "redis.double_task"
    """The `nth` task after `at_s` runs a second time, after the first run has ended."""
    REDIS_LATE_TASK = "redis.late_task"
    """The `nth` task after `at_s` runs later by `delay_s`."""
    REDIS_RUN_TWICE = "redis.run_twice"
    """Two workers run the `nth` task after `at_s` at the same time."""
    REDIS_LOST_ACK = "redis.lost_ack"
    """The acknowledgement of the `nth` task after `at_s` is lost, so that Redis hands the task out again."""
    WORKER_FAIL_ORDER = "worker.fail_order"
    """Each task fails that holds the `nth` order after `at_s`, for `for_s`: `when` "before" or "after" it has written."""

    REPLICA_OLD_ROWS = "replica.old_rows"
    """The order service answers check-backs from a copy of its database of `at_s`, for `for_s`, beginning `age_s` later."""
    MEMBER_OLD = "member.old"
    """The order service is told to stop at `at_s` and starts again after `for_s`: other members of its group are older then."""
    OUTAGE = "outage"
    """The process is down for 20 minutes to an hour: it is killed at `at_s` and starts again after `for_s`."""
