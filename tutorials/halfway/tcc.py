"""TCC: both services *try*, which reserves the order and the credit. Then the coordinator decides to *confirm* or to *cancel*."""

import sys
from pathlib import Path
from subprocess import CalledProcessError

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.halfway.services import call, die, show

TRY = "INSERT INTO {service} VALUES (?, 'RESERVED')"
CONFIRM = "UPDATE {service} SET state = 'CONFIRMED' WHERE order_id = ?"
CANCEL = "INSERT INTO {service} VALUES (?, 'CANCELLED') ON CONFLICT (order_id) DO UPDATE SET state = 'CANCELLED'"
"""Stores the row also if there was no try (an empty cancel). A try that comes later then fails: the same idea as the barrier."""
LOG = "INSERT OR REPLACE INTO log VALUES (?, ?)"


def place(folder: Path, order_id: str, *, is_killed: bool = False) -> None:
    """Places an order with TCC: tries, decides, and ends the transaction."""
    call(folder, "log", (LOG, [order_id, "TRYING"]))
    try:
        for service in ("orders", "credits"):
            call(folder, service, (TRY.format(service=service), [order_id]))
    except CalledProcessError:
        call(folder, "log", (LOG, [order_id, "CANCEL"]))
    else:
        call(folder, "log", (LOG, [order_id, "CONFIRM"]))  # this decides
        if is_killed:
            call(folder, "orders", (CONFIRM.format(service="orders"), [order_id]))
            die()
    end(folder, order_id)


def end(folder: Path, order_id: str) -> None:
    """Confirms the order in both services if the log contains CONFIRM, otherwise cancels it. Safe to call repeatedly."""
    [[state]] = call(folder, "log", ("SELECT state FROM log WHERE order_id = ?", [order_id]))
    for service in ("orders", "credits"):
        call(folder, service, ((CONFIRM if state == "CONFIRM" else CANCEL).format(service=service), [order_id]))
    call(folder, "log", (LOG, [order_id, "ENDED"]))


def recover(folder: Path) -> None:
    """Ends each unfinished transaction in the log. An operator must run this function after a kill."""
    for (order_id,) in call(folder, "log", ("SELECT order_id FROM log WHERE state <> 'ENDED'", [])):
        end(folder, order_id)


if __name__ == "__main__":
    with until_interrupted():
        match Path(sys.argv[1]), sys.argv[2:]:
            case folder, ["place", order_id, *kill]:
                place(folder, order_id, is_killed=kill == ["kill"])
            case folder, ["recover"]:
                recover(folder)
            case folder, ["show", order_id]:
                show(folder, order_id, "orders", "credits", "log")
