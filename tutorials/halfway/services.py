"""The order service, the credit service and a coordinator's log. Each has its own SQLite database; each call is a process."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

Statement = tuple[str, Sequence[str]]
TABLES = {
    "orders": "CREATE TABLE IF NOT EXISTS orders (order_id TEXT PRIMARY KEY, state TEXT NOT NULL)",
    "credits": "CREATE TABLE IF NOT EXISTS credits (order_id TEXT PRIMARY KEY, state TEXT NOT NULL)",
    "log": "CREATE TABLE IF NOT EXISTS log (order_id TEXT PRIMARY KEY, state TEXT NOT NULL)",
}


def call(folder: Path, service: str, *statements: Statement) -> list[list[Any]]:
    """Runs one local transaction of a service in a new process, and returns the rows of its last statement."""
    command = [sys.executable, "-S", __file__, str(folder / f"{service}.db"), TABLES[service]]
    ended = subprocess.run(command, input=json.dumps(statements), capture_output=True, text=True, check=True)
    return list(json.loads(ended.stdout))


def state_of(folder: Path, service: str, order_id: str) -> str:
    """Returns the state of the order in the service's table, or a dash if it has no row."""
    rows = call(folder, service, (f"SELECT state FROM {service} WHERE order_id = ?", [order_id]))
    return str(rows[0][0]) if rows else "-"


def log(folder: Path, order_id: str, state: str) -> None:
    """Writes the order's state to the coordinator's log."""
    call(folder, "log", ("INSERT OR REPLACE INTO log VALUES (?, ?)", [order_id, state]))


def unfinished(folder: Path) -> list[str]:
    """Returns the orders of the coordinator's log that have not ended."""
    return [str(order_id) for (order_id,) in call(folder, "log", ("SELECT order_id FROM log WHERE state <> 'ENDED'", []))]


def show(folder: Path, order_id: str, *services: str) -> None:
    """Prints the state of the order in each of the services."""
    print(", ".join(f"{service}: {state_of(folder, service, order_id)}" for service in services))


def die() -> NoReturn:
    """Kills this process, like kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process must not continue")


if __name__ == "__main__":
    with sqlite3.connect(sys.argv[1]) as database:
        database.execute(sys.argv[2])
        rows: list[Any] = []
        for statement, values in json.load(sys.stdin):
            rows = database.execute(statement, values).fetchall()
        database.commit()
    json.dump(rows, sys.stdout)
