"""TCC: both services *try*, which reserves the order and the credit. Then the coordinator decides to *confirm* or to *cancel*."""

from pathlib import Path
from subprocess import CalledProcessError

from tutorials.halfway.services import call, die, log, state_of, unfinished

TRY = "INSERT INTO {service} VALUES (?, 'RESERVED')"
CONFIRM = "UPDATE {service} SET state = 'CONFIRMED' WHERE order_id = ?"
CANCEL = "INSERT INTO {service} VALUES (?, 'CANCELLED') ON CONFLICT (order_id) DO UPDATE SET state = 'CANCELLED'"
"""Stores the row also if there was no try (an empty cancel). A try that comes later then fails: the same idea as the barrier."""


def place(folder: Path, order_id: str, *, is_killed: bool = False) -> None:
    """Places an order with TCC: tries, decides, and ends the transaction. `is_killed` kills the process halfway."""
    log(folder, order_id, "TRYING")
    try:
        for service in ("orders", "credits"):
            call(folder, service, (TRY.format(service=service), [order_id]))
        log(folder, order_id, "CONFIRM")  # this decides
    except CalledProcessError:
        log(folder, order_id, "CANCEL")
    end(folder, order_id, is_killed=is_killed)


def end(folder: Path, order_id: str, *, is_killed: bool = False) -> None:
    """Confirms or cancels in both services according to the log, and cancels without a decision. It is safe to repeat."""
    statement = CONFIRM if state_of(folder, "log", order_id) == "CONFIRM" else CANCEL
    call(folder, "orders", (statement.format(service="orders"), [order_id]))
    if is_killed:
        die()
    call(folder, "credits", (statement.format(service="credits"), [order_id]))
    log(folder, order_id, "ENDED")


def recover(folder: Path) -> None:
    """Ends each unfinished transaction of the log. Someone must start this after a kill."""
    for order_id in unfinished(folder):
        end(folder, order_id)
