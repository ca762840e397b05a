"""A saga, whose steps are committed at once. The coordinator's log lists unfinished sagas, and a failed step is undone."""

from pathlib import Path
from subprocess import CalledProcessError

from tutorials.halfway.services import call, die, log, unfinished

PLACE = "INSERT OR IGNORE INTO orders VALUES (?, 'PLACED')"
UNDO_PLACE = "UPDATE orders SET state = 'CANCELLED' WHERE order_id = ?"
CREDIT = "INSERT OR IGNORE INTO credits VALUES (?, 'GIVEN')"


def place(folder: Path, order_id: str, *, is_killed: bool = False) -> None:
    """Places an order as a saga. `is_killed` kills the process halfway."""
    log(folder, order_id, "STARTED")
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
    log(folder, order_id, "ENDED")


def recover(folder: Path) -> None:
    """Continues each unfinished saga of the log. Someone must start this after a kill."""
    for order_id in unfinished(folder):
        go_on(folder, order_id)
