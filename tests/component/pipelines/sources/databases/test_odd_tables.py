"""Tests that tables with an unusual structure, and files with restrictive permissions, cause no findings about correct data."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import adbc_driver_sqlite.dbapi
import pytest

from pipelines.commands.running import are_small
from pipelines.embedded import reconcile_embedded
from pipelines.errors import StateUnusable, UnreadableDatabase
from pipelines.increments.marks import Marks, next_marks
from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.log_gaps import gap_lines
from pipelines.judging.totals import Tolerance
from pipelines.reporting.report import verdict_text
from pipelines.sources.databases.database_source import TablePartition, TableSource
from pipelines.sources.databases.tables import ORDERS, check_tables, options_of
from pipelines.sources.logs.message_logs import StoreLog
from pipelines.sources.reading import schema_of
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter

NOW_MS = 1_790_000_000_000
PLACED_MS = NOW_MS - 3_600_000
IDS = ["a", "b", "c"]


def found(shop: ShopDatabases, folder: Path, *stores: Path) -> Counter[tuple[str, str | None]]:
    books = shop.books(*stores)
    check_tables(books.order_database, books.credit_database)
    outcome = reconcile_embedded(books, CutOff(NOW_MS), str(folder / "out"))
    counted = Counter[tuple[str, str | None]]()
    for row in outcome.rows:
        counted[row["finding"], row["cause"]] += row["count"]
    return counted


def placed(shop: ShopDatabases, at_ms: int = PLACED_MS) -> None:
    shop.add_orders(IDS, at_ms=at_ms)
    shop.add_credits(IDS, at_ms=at_ms)


def copied(database: sqlite3.Connection, table: str, select: str, options: str = "") -> None:
    """Replaces the table by a copy of it."""
    database.executescript(
        f"CREATE TABLE away AS SELECT * FROM {table}; DROP TABLE {table}; CREATE {options} {table} AS {select}; "
    )


def with_ids(shop: ShopDatabases, table: str, id_sql: str) -> None:
    """Replaces the ids of a table's rows by the results of this expression."""
    database = shop.credits if table == "credits" else shop.orders
    names = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] != "id"]
    copied(database, table, f"SELECT {id_sql} AS id, {', '.join(names)} FROM away", "TABLE")


ALL_MATCHED = {(Finding.MATCHED, None): len(IDS)}


@pytest.mark.parametrize("id_sql", ["'row ' || id", "id + 0.5", "lower(hex(randomblob(16)))", "NULL", "CAST(id AS TEXT)"])
@pytest.mark.parametrize("table", ["orders", "order_items", "credits"])
def test_ids_need_be_no_whole_numbers(shop: ShopDatabases, tmp_path: Path, table: str, id_sql: str) -> None:
    placed(shop)
    with_ids(shop, table, id_sql)
    assert found(shop, tmp_path) == ALL_MATCHED


@pytest.mark.parametrize("table", ["orders", "order_items", "transactions", "credits", "balances"])
def test_a_view_is_read_as_a_table(shop: ShopDatabases, tmp_path: Path, table: str) -> None:
    placed(shop)
    copied(shop.credits if table in ("credits", "balances") else shop.orders, table, "SELECT * FROM away", "VIEW")
    assert found(shop, tmp_path) == ALL_MATCHED


def test_a_table_without_rowid_is_read(shop: ShopDatabases, tmp_path: Path) -> None:
    placed(shop)
    shop.credits.executescript(
        "ALTER TABLE balances RENAME TO away; CREATE TABLE balances (customer TEXT PRIMARY KEY, points BIGINT) WITHOUT ROWID;"
        "INSERT INTO balances SELECT * FROM away;"
    )
    assert found(shop, tmp_path) == ALL_MATCHED


def test_gaps_in_ids_make_no_book_large_and_no_table_many_ranges(shop: ShopDatabases, tmp_path: Path) -> None:
    placed(shop)
    for database, table in ((shop.orders, "orders"), (shop.orders, "order_items"), (shop.credits, "credits")):
        database.execute(f"UPDATE {table} SET id = id * 1000000000000")
        database.commit()
    assert are_small(shop.books())
    reader = TableSource(options_of(shop.books().order_database, ORDERS)).reader(schema_of(ORDERS.columns))
    (part,) = reader.partitions()
    assert isinstance(part, TablePartition)
    assert not part.is_empty
    assert found(shop, tmp_path) == ALL_MATCHED


def test_a_store_that_lost_its_holes_is_small(shop: ShopDatabases, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store", segment_size=80 * 1024 * 1024)
    log.deliver("a")
    (segment,) = (tmp_path / "store/commitlog").iterdir()
    data = segment.read_bytes().rstrip(b"\0")
    segment.write_bytes(data.ljust(80 * 1024 * 1024, b"\0"))
    assert segment.stat().st_blocks * 512 > 64 * 1024 * 1024, "no hole is left"
    assert are_small(shop.books(tmp_path / "store"))
    segment.write_bytes(data.ljust(80 * 1024 * 1024, b"x"))
    assert not are_small(shop.books(tmp_path / "store"))


def test_times_in_seconds_are_told(shop: ShopDatabases, tmp_path: Path) -> None:
    placed(shop, PLACED_MS // 1000)
    assert found(shop, tmp_path) == {(Finding.WRONG_TIME, Cause.PAST): len(IDS)}


def as_another_user() -> None:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(
    ("mode", "is_open", "told"),
    [
        (0o644, False, "consistent"),
        (0o600, False, "permission denied; run this as the user of the services, or copy"),
        (0o644, True, "consistent"),
    ],
)
def test_another_user_reads_the_books_or_is_told_how(
    shop: ShopDatabases, tmp_path: Path, mode: int, is_open: bool, told: str
) -> None:
    placed(shop)
    if not is_open:
        shop.close()
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    for path in tmp_path.glob("*.db*"):
        path.chmod(mode)
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            as_another_user()
            check_tables(shop.books().order_database, shop.books().credit_database)
            os.write(writes, b"consistent")
        except UnreadableDatabase as error:
            os.write(writes, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        assert told in answer.read()


LEAVE_WAL = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode = DELETE').fetchone())"
"""It needs the database to itself, as a last connection does that deletes the -wal and the -shm."""


def test_a_second_reader_keeps_the_locks_of_the_first(shop: ShopDatabases) -> None:
    """A file that a process opens and closes takes the locks away that SQLite has on it in the same process."""
    placed(shop)
    shop.close()
    command = [sys.executable, "-c", LEAVE_WAL, str(shop.orders_path)]
    with adbc_driver_sqlite.dbapi.connect(f"file:{shop.orders_path}", autocommit=True) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM orders")
        check_tables(shop.books().order_database, shop.books().credit_database)
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "database is locked" in refused.stderr, refused.stdout
    assert "delete" in subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("has_queues", [True, False])
def test_offsets_beyond_an_empty_log_are_told(shop: ShopDatabases, tmp_path: Path, has_queues: bool) -> None:
    """A gap is reported if 41 messages were consumed but the log contains none."""
    whole = LogWriter(tmp_path / "whole", has_queues=has_queues)
    for number in range(41):
        whole.deliver(f"order-{number}")
    whole.consume()
    store = LogWriter(tmp_path / "store", has_queues=has_queues).store
    (tmp_path / "whole/config").rename(store / "config")
    (store / "commitlog" / f"{0:020d}").write_bytes(bytes(1 << 20))
    outcome = reconcile_embedded(shop.books(store), CutOff(NOW_MS), str(tmp_path / "out"))
    assert [row["finding"] for row in outcome.rows] == [Finding.LOG_GAP]
    assert gap_lines(outcome.rows) == [
        "the log has lost the end of orders, queue 0: 41 consumed, 0 in the log: 0 transactions cannot be judged"
    ]


def test_a_log_whose_queues_lie_behind_it_has_lost_nothing(shop: ShopDatabases, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for order_id in IDS:
        log.deliver(order_id)
    log.consume()
    (units,) = (tmp_path / "store/consumequeue/orders/0").iterdir()
    units.write_bytes(units.read_bytes()[:-20])
    assert StoreLog(log.store).lost_ends({"orders": {0: 3}}) == []
    assert StoreLog(log.store).lost_ends({"orders": {0: 4, 1: 0}}) == ["orders, queue 0: 4 consumed, 3 in the log"]
    assert StoreLog(log.store).lost_ends({"orders": None}) == []


def test_empty_books_say_that_there_is_nothing_to_compare(shop: ShopDatabases, tmp_path: Path) -> None:
    outcome = reconcile_embedded(shop.books(), CutOff(NOW_MS), str(tmp_path / "out"))
    assert verdict_text(outcome.totals, Tolerance()) == ("consistent: nothing to compare: no order, no credit, no message")


@pytest.mark.parametrize("id_sql", ["'row ' || id", "id + 0.5", "NULL", "CAST(id AS TEXT)"])
@pytest.mark.parametrize("table", ["orders", "order_items", "credits"])
def test_increments_refuse_ids_that_are_no_whole_numbers(shop: ShopDatabases, table: str, id_sql: str) -> None:
    placed(shop)
    with_ids(shop, table, id_sql)
    books = shop.books()
    told = f"the ids of {table} are not integers, which --state requires; run without --state"
    with pytest.raises(StateUnusable, match=told):
        next_marks(Marks(), books.order_database, books.credit_database, (), CutOff(NOW_MS))
