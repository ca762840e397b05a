"""Prints a table of malicious logs and tables, the rows that are read from them, and the reported faults.

Run it with `python -m tests.component.pipelines.hostile_sources`. It does not need Spark, because it reads the sources as one
task does. `--then FOLDER` also reads them with the code of another checkout.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.record import HEAD_V4, encode_record
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.log_writer import HOST, LogWriter

EVIL = json.dumps({"order_id": "evil", "total_cents": 1_000_000_000}).encode()
READ_LOG = """
import sys
from pathlib import Path
from rocketmq_commitlog.commit_log import Damage, scan, split_log
try:
    found = [one for part in split_log(Path(sys.argv[1]), int(sys.argv[2])) for one in scan(part)]
    damage = [one for one in found if isinstance(one, Damage)]
    records = [one for one in found if not isinstance(one, Damage)]
    evil = sum(one.body.startswith(b'{"order_id": "evil"') for one in records)
    kinds = ["gap" if getattr(one, "is_gap", False) else "damage" for one in damage]
    told = ", ".join(f"{kind} {one.commit_log_offset}-{one.commit_log_offset + one.size}" for kind, one in zip(kinds, damage))
    print(f"{len(records)} records, {evil} of them forged|{told or 'nothing'}")
except Exception as error:
    print(f"nothing|{type(error).__name__}: {str(error)[-60:]}")
"""
READ_TABLES = """
import sys
from pipelines.sources.databases.database_source import TableSource
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.reading import read_here
from pyspark.sql.types import LongType, StringType, StructField, StructType
from pipelines.sources.databases import tables
orders, credits = map(parse_database_url, sys.argv[1:3])
try:
    rows = 0
    for address, table in ((orders, tables.ORDERS), (credits, tables.CREDITS)):
        kinds = {"bigint": LongType(), "string": StringType()}
        schema = StructType([StructField(name, kinds[kind]) for name, kind in table.columns.items()])
        nullable = {"nullable": ",".join(table.nullable)} if table.nullable else {}
        rows += read_here(TableSource, {**address.to_options(), "table": table.name, "key": "id", **nullable}, schema).num_rows
    balances = tables.read_wrong_balances(credits).num_rows
    find = getattr(tables, "read_unreadable_values", lambda *_: [])
    print(f"{rows} rows|{'; '.join([*find(orders, credits), *(['wrong balance'] if balances else [])]) or 'nothing'}")
except Exception as error:
    print(f"nothing|exit 2: {type(error).__name__}: {str(error)[-70:]}")
"""


def planted(log: LogWriter, prefix: int, queue_offset: int = 1) -> bytes:
    """Returns the record of a valid committed order of 10^9 cents, to be embedded in the body of the next message.

    `prefix` is the number of bytes in the body before the record.
    """
    return encode_record(
        topic=b"orders", queue_id=0, queue_offset=queue_offset, commit_log_offset=log.end + HEAD_V4.size + prefix, flag=0,
        sys_flag=sysflag.TRANSACTION_COMMIT_TYPE, born_timestamp=1, born_host=HOST, store_timestamp=1, store_host=HOST,
        reconsume_times=0, prepared_transaction_offset=0, body=EVIL, properties=b"KEYS\x01evil\x02",
    )  # fmt: skip


def carrier(log: LogWriter) -> int:
    """Appends a message whose body contains a whole record. Returns its offset."""
    log.half("first")
    offset = log.append("orders", "carrier", None, 1, body=b"x" * 300 + planted(log, 300) + b"x" * 300)
    log.half("last")
    return offset


def across_a_boundary(log: LogWriter) -> None:
    carrier(log)


def damaged_in_front(log: LogWriter) -> None:
    log.damage(carrier(log) + 90, b"\xee")


def head_destroyed(log: LogWriter) -> None:
    log.damage(carrier(log), b"\xee" * 60)


def several(log: LogWriter) -> None:
    for number in range(40):
        log.half(str(number))


def missing_file(log: LogWriter) -> None:
    several(log)
    (log.store / "commitlog" / f"{2_000:020}").unlink()


def torn_end(log: LogWriter) -> None:
    several(log)
    log.damage(log.end - 400, bytes(400))


def missing_last_file(log: LogWriter) -> None:
    several(log)
    sorted((log.store / "commitlog").iterdir())[-1].unlink()


def missing_first_file(log: LogWriter) -> None:
    several(log)
    sorted((log.store / "commitlog").iterdir())[0].unlink()


def cut_short(log: LogWriter) -> None:
    several(log)
    os.truncate(log.store / "commitlog" / f"{2_000:020}", 650)


def zeroed(log: LogWriter) -> None:
    several(log)
    (log.store / "commitlog" / f"{2_000:020}").write_bytes(bytes(2_000))


def pipe(log: LogWriter) -> None:
    several(log)
    path = log.store / "commitlog" / f"{2_000:020}"
    path.unlink()
    os.mkfifo(path)


LOGS: dict[str, tuple[Callable[[LogWriter], None], int, bool]] = {
    "a record in a body across a range boundary": (across_a_boundary, 350, True),
    "the same, no consume queues": (across_a_boundary, 350, False),
    "the same, one byte of the body damaged": (damaged_in_front, 1 << 26, True),
    "the same, the carrier's head destroyed": (head_destroyed, 1 << 26, True),
    "head destroyed, no consume queues": (head_destroyed, 1 << 26, False),
    "a file is missing in the middle": (missing_file, 1 << 26, True),
    "the last file is missing": (missing_last_file, 1 << 26, True),
    "the first file is missing": (missing_first_file, 1 << 26, True),
    "the end is torn, consume queues go on": (torn_end, 1 << 26, True),
    "the end is torn, nothing goes on": (torn_end, 1 << 26, False),
    "a segment cut short in the middle": (cut_short, 1 << 26, True),
    "a segment of zeros in the middle": (zeroed, 1 << 26, True),
    "a pipe in the place of a segment": (pipe, 1 << 26, True),
}
VALUES: dict[str, tuple[str, str]] = {
    "total_cents 0.6": ("orders", "UPDATE orders SET total_cents = 0.6 WHERE id = 2"),
    "total_cents '12abc'": ("orders", "UPDATE orders SET total_cents = '12abc' WHERE id = 2"),
    "total_cents beyond bigint": ("orders", "UPDATE orders SET total_cents = 9.3e18 WHERE id = 2"),
    "total_cents infinite": ("orders", "UPDATE orders SET total_cents = 9e999 WHERE id = 2"),
    "created_at_ms NULL": ("orders", "UPDATE orders SET created_at_ms = NULL WHERE id = 2"),
    "created_at_ms 'yesterday'": ("orders", "UPDATE orders SET created_at_ms = 'yesterday' WHERE id = 2"),
    "customer of bytes": ("orders", "UPDATE orders SET customer = x'00ff' WHERE id = 2"),
    "customer that is no UTF-8": ("orders", "UPDATE orders SET customer = CAST(x'61ff' AS TEXT) WHERE id = 2"),
    "balance of 21.9 points": ("credits", "UPDATE balances SET points = 21.9"),
    "points that add up beyond bigint": ("credits", "UPDATE credits SET points = 9223372036854775807"),
}


def answers(code: str, checkout: Path, *arguments: object) -> list[str]:
    """Runs the code in a checkout, and returns what it prints: the rows read, and the reported faults."""
    command = ["timeout", "20", sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": f"broker{os.pathsep}."},
    )
    return (done.stdout.strip().splitlines() or [f"nothing|{'waits for ever' if done.returncode == 124 else done.stderr[-60:]}"])[
        -1
    ].split("|")


def spoiled(connection: sqlite3.Connection, statement: str) -> None:
    """Executes and commits a statement that damages the database."""
    connection.execute(statement)
    connection.commit()


def rows(checkout: Path) -> list[tuple[str, Any, Any]]:
    """Returns each kind of source with the rows that are read and the faults that are reported."""
    found: list[tuple[str, Any, Any]] = []
    with TemporaryDirectory() as folder:
        for number, (name, (make, range_bytes, has_queues)) in enumerate(LOGS.items()):
            size = 1 << 16 if make in (across_a_boundary, damaged_in_front, head_destroyed) else 2_000
            log = LogWriter(Path(folder) / str(number), segment_size=size, has_queues=has_queues)
            make(log)
            read, reported = answers(READ_LOG, checkout, log.store, range_bytes)
            found.append((f"log: {name}", read, reported))
        for name, (database, statement) in VALUES.items():
            place = Path(folder) / name.replace("/", " ").replace("'", "")
            place.mkdir()
            shop = ShopDatabases(place)
            shop.add_orders(["a", "b", "c"])
            shop.add_credits(["a", "b", "c"])
            spoiled(shop.orders if database == "orders" else shop.credits, statement)
            read, reported = answers(READ_TABLES, checkout, shop.orders_url, shop.credits_url)
            shop.close()
            found.append((f"table: {name}", read, reported))
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--then", type=Path, help="another checkout, whose code reads the same")
    then = parser.parse_args().then
    here = Path(__file__).resolve().parents[3]
    now = rows(here)
    before = rows(then.resolve()) if then else now
    print("| kind | " + ("read then | reported then | " if then else "") + "read now | reported now |")
    print("| --- " * (5 if then else 3) + "|")
    for (name, read, reported), (_, read_then, reported_then) in zip(now, before, strict=True):
        old = f"{read_then} | {reported_then} | " if then else ""
        print(f"| {name} | {old}{read} | {reported} |")


if __name__ == "__main__":
    main()
