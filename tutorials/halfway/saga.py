"""A saga, whose steps are committed immediately. If a step fails, the earlier steps are undone.

The coordinator's log lists unfinished sagas.
"""

import sys
from pathlib import Path
from subprocess import CalledProcessError

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.halfway.services import call, die, show

PLACE = "INSERT OR IGNORE INTO orders VALUES (?, 'PLACED')"
UNDO_PLACE = "UPDATE orders SET state = 'CANCELLED' WHERE order_id = ?"
CREDIT = "INSERT OR IGNORE INTO credits VALUES (?, 'GIVEN')"
LOG = "INSERT OR REPLACE INTO log VALUES (?, ?)"


def place(folder: Path, order_id: str, *, is_killed: bool = False) -> None:
    """Places an order as a saga. `is_killed` kills the process halfway."""
    call(folder, "log", (LOG, [order_id, "STARTED"]))
    call(folder, "orders", (PLACE, [order_id]))  # visible to everyone from here on
    if is_killed:
        die()
    go_on(folder, order_id)


def go_on(folder: Path, order_id: str) -> None:
    """Runs the remaining steps of the saga. It is safe to run a step more than once."""
    call(folder, "orders", (PLACE, [order_id]))
    try:
        call(folder, "credits", (CREDIT, [order_id]))
    except CalledProcessError:
        call(folder, "orders", (UNDO_PLACE, [order_id]))
    call(folder, "log", (LOG, [order_id, "ENDED"]))


def recover(folder: Path) -> None:
    """Continues each unfinished saga in the log. An operator must run this function after a kill."""
    for (order_id,) in call(folder, "log", ("SELECT order_id FROM log WHERE state <> 'ENDED'", [])):
        go_on(folder, order_id)


if __name__ == "__main__":
    with until_interrupted():
        match Path(sys.argv[1]), sys.argv[2:]:
            case folder, ["place", order_id, *kill]:
                place(folder, order_id, is_killed=kill == ["kill"])
            case folder, ["recover"]:
                recover(folder)
            case folder, ["show", order_id]:
                show(folder, order_id, "orders", "credits", "log")
