"""Tests that incremental runs together have the same findings as one run over all rows."""

import json
import random
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.errors import StateUnusable
from pipelines.increments.increment import names_of, reconcile_new
from pipelines.increments.state import IncrementState, Manifest
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import FindingTotal
from pipelines.reconciliation import Books, ReconciliationOutcome, reconcile
from pipelines.repair.audit import known_repairs
from pipelines.repair.plan import Action
from pipelines.sources.databases.database_url import parse_database_url
from pipelines.sources.reading import Reading
from rocketmq_commitlog.commit_log import LogRecord, scan, split_log
from tests.component.pipelines.broken_books import AS_OF_MS, GRACE_SECONDS, OVERDUE_SECONDS, STORIES, BrokenBooks
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.log_writer import UNIT, LogWriter

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]

TABLES = {"orders": ("orders", "order_items", "transactions"), "credits": ("credits", "balances")}


@dataclass
class Replay:
    """A growing copy of the books in `whole`. Each step adds the rows created since the last step, except some late ones."""

    whole: Path
    now: Path
    placed_ms: Mapping[str, int]
    chance: random.Random

    @property
    def books(self) -> Books:
        addresses = [parse_database_url(f"sqlite:///{self.now}/{name}.db") for name in TABLES]
        return Books(*addresses, (self.now / "store",))

    def grow(self, as_of_ms: int) -> None:
        """Copies the rows up to `as_of_ms`. Some rows younger than the grace period are missing, as if not yet committed."""
        self.now.mkdir(exist_ok=True)
        for database, tables in TABLES.items():
            target = self.now / f"{database}.db"
            shutil.copy(self.whole / f"{database}.db", target)
            with sqlite3.connect(target) as connection:
                late = {order for order in self.placed_ms if self.chance.random() < 0.5} if as_of_ms < AS_OF_MS else set()
                for table in tables:
                    if table != "balances":
                        self._leave_out(connection, table, as_of_ms, late)
                if database == "credits":
                    connection.execute("DELETE FROM rocketmq_inbox WHERE received_at_ms > ?", (as_of_ms,))
                    _balance(connection)
            connection.close()
        self._grow_log(as_of_ms == AS_OF_MS)

    def _leave_out(self, connection: sqlite3.Connection, table: str, as_of_ms: int, late: set[str]) -> None:
        """Deletes the rows that do not exist yet. An order and its items appear together."""
        rows = connection.execute(f"SELECT rowid, * FROM {table}")
        names = [column[0] for column in rows.description]
        for values in rows.fetchall():
            row = dict(zip(names, values, strict=True))
            order_id = str(row.get("order_id") or str(row.get("transaction_id")).removeprefix("U-"))
            made_ms = row.get("created_at_ms") or self.placed_ms[order_id]
            is_away = made_ms > as_of_ms or (order_id in late and made_ms > as_of_ms - GRACE_SECONDS * 1000)
            if is_away:
                connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (values[0],))

    def _grow_log(self, is_whole: bool) -> None:
        store = self.now / "store"
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(self.whole / "store", store)
        if is_whole:
            return
        offsets = [found.commit_log_offset for part in split_log(store) for found in scan(part) if isinstance(found, LogRecord)]
        self.cut = self.chance.choice([offset for offset in offsets if offset >= getattr(self, "cut", 0)])
        for path in sorted((store / "commitlog").iterdir()):
            begins, size = int(path.name), path.stat().st_size
            if begins >= self.cut and begins:
                path.unlink()
            elif begins + size > self.cut:
                path.write_bytes(path.read_bytes()[: self.cut - begins].ljust(size, b"\0"))
        for path in (store / "consumequeue").glob("*/*/*"):
            units = UNIT.iter_unpack(path.read_bytes())
            path.write_bytes(b"".join(UNIT.pack(*unit) for unit in units if unit[0] < self.cut))
        file = store / "config" / "consumerOffset.json"
        table = json.loads(file.read_text())["offsetTable"]
        consumed = {
            topic: {queue: self.chance.randint(0, end // 3) for queue, end in queues.items()} for topic, queues in table.items()
        }
        file.write_text(json.dumps({"offsetTable": consumed}))


def _balance(connection: sqlite3.Connection) -> None:
    """Recomputes the balances from the copied rows. Keeps the deliberate errors of the original balances."""
    connection.execute(
        "UPDATE balances SET points = points"
        " - (SELECT COALESCE(SUM(points), 0) FROM whole WHERE whole.customer = balances.customer)"
        " + (SELECT COALESCE(SUM(points), 0) FROM credits WHERE credits.customer = balances.customer)"
    )


def whole_books(folder: Path, seed: int) -> dict[str, int]:
    """Creates books with every kind of error, and orders at increasing times.

    Returns the time of each order in milliseconds, keyed by order id.
    """
    folder.mkdir()
    shop = ShopDatabases(folder)
    books = BrokenBooks(shop, LogWriter(folder / "store", segment_size=1 << 17))
    names = list(STORIES)
    random.Random(seed).shuffle(names)
    placed_ms = {}
    for number, name in enumerate(names):
        at_ms = 400_000 + number * 10_000
        order_id = books.add(name, number, at_ms)
        placed_ms[order_id] = books.placed_ms.get(order_id, at_ms)  # some stories place their order later
    books.log.consume()
    for database, tables in ((shop.orders, ("orders", "transactions")), (shop.credits, ("credits",))):
        for table in tables:
            _put_in_order(database, table, placed_ms)
    _put_in_order(shop.orders, "order_items", placed_ms)
    shop.credits.execute("CREATE TABLE whole AS SELECT customer, points FROM credits")
    shop.orders.commit()
    shop.credits.commit()
    for database in (shop.orders, shop.credits):
        database.execute("PRAGMA journal_mode = DELETE")
    shop.close()
    return placed_ms


def _put_in_order(database: sqlite3.Connection, table: str, placed_ms: Mapping[str, int]) -> None:
    """Rewrites the rows so that ids increase with creation time. An item is created at the time of its order."""
    rows = database.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in rows.description]
    dated = []
    for values in rows.fetchall():
        row: dict[str, Any] = dict(zip(names, values, strict=True))
        order_id = str(row.get("order_id") or str(row["transaction_id"]).removeprefix("U-"))
        made_ms = placed_ms[order_id]
        made_ms = row.get("created_at_ms") or made_ms
        dated.append((made_ms, row))
    database.execute(f"DELETE FROM {table}")
    for _, row in sorted(dated, key=lambda each: each[0]):
        values = [None if name == "id" else row[name] for name in names]
        database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)


def told(outcome: ReconciliationOutcome) -> list[tuple[object, ...]]:
    """Returns the findings about single orders and customers as sorted tuples."""
    kept = [row for row in outcome.rows if row["order_id"] is not None or row["stage"] is not None]
    names = (
        "order_id",
        "customer",
        "finding",
        "cause",
        "stage",
        "order_cents",
        "credit_cents",
        "at_stake_cents",
        "transaction_id",
    )
    return sorted(tuple(str(row[name]) for name in names) for row in kept)


def sums(outcome: ReconciliationOutcome) -> list[FindingTotal]:
    return [total for total in outcome.totals if total.count]


def counts(outcome: ReconciliationOutcome) -> dict[str, int]:
    return {total.finding.value: total.count for total in sums(outcome)}


def cut_off_at(as_of_ms: int) -> CutOff:
    return CutOff(as_of_ms, GRACE_SECONDS, OVERDUE_SECONDS)


def increment(spark: SparkSession, sources: Books, as_of_ms: int, folder: Path) -> ReconciliationOutcome:
    """Runs one increment, with state and output in the folder."""
    state = IncrementState(folder / "state", window_ms=600_000)
    return reconcile_new(Reading(spark, True), sources, cut_off_at(as_of_ms), str(folder / "out"), state)


def break_off(manifest: Manifest) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("seed", [1])
def test_increments_find_what_one_run_over_everything_finds(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Incremental runs have the same findings and sums as one run over all rows.

    One of the incremental runs is interrupted before it publishes its results, and repeated.
    """
    placed_ms = whole_books(tmp_path / "whole", seed)
    replay = Replay(tmp_path / "whole", tmp_path / "now", placed_ms, random.Random(seed))
    state, reading = IncrementState(tmp_path / "state", window_ms=600_000), Reading(spark, True)

    def run(as_of_ms: int) -> ReconciliationOutcome:
        return reconcile_new(reading, replay.books, cut_off_at(as_of_ms), str(tmp_path / "out"), state)

    replay.grow(900_000)
    run(900_000)
    good = state.read(names_of(replay.books))
    replay.grow(AS_OF_MS)
    with monkeypatch.context() as broken:
        broken.setattr(state, "replace", break_off)
        with pytest.raises(KeyboardInterrupt):
            run(AS_OF_MS)
    assert state.read(names_of(replay.books)) == good
    found = run(AS_OF_MS)
    expected = reconcile(reading, replay.books, cut_off_at(AS_OF_MS), str(tmp_path / "all"))
    assert told(found) == told(expected)
    assert sums(found) == sums(expected)
    manifest = state.read(names_of(replay.books))
    assert manifest is not None
    assert set(manifest.windows) >= {"0", "1"}
    assert len({manifest.run, *manifest.windows.values()}) == len(list(state.folder.glob("run-*")))


@pytest.mark.release
def test_an_order_that_ends_behind_its_mark_is_judged_by_its_end(
    spark: SparkSession, tmp_path: Path, shop: ShopDatabases
) -> None:
    """An order that is cancelled after it was settled is judged again, and is reported as reversed."""
    books = BrokenBooks(shop, LogWriter(tmp_path / "store"))
    for order_id in ("stays", "goes"):
        books.health(order_id)
    books.log.consume()

    def run(as_of_ms: int) -> dict[str, int]:
        return counts(increment(spark, shop.books(books.log.store), as_of_ms, tmp_path))

    assert run(AS_OF_MS) == {"matched": 2}
    books.cancel("goes", AS_OF_MS)
    books.take_back("goes")
    books.log.consume()
    assert run(AS_OF_MS + 200_000) == {"matched": 1, "reversed": 1}
    assert run(AS_OF_MS + 400_000) == {"matched": 1, "reversed": 1}


@pytest.mark.release
def test_messages_in_the_inbox_are_read_in_each_run_and_kept_in_none(
    spark: SparkSession, tmp_path: Path, shop: ShopDatabases
) -> None:
    """Incremental runs have the same findings as full runs while messages wait in the inbox.

    Between the runs, messages are credited, parked and retried, and the message of a settled order is redelivered.
    """
    books = BrokenBooks(shop, LogWriter(tmp_path / "store"), at_ms=AS_OF_MS - 200_000)
    books.health("settled")
    for order_id in ("waits", "parks"):
        books.place(order_id)
        books.announce(order_id)
        books.store(order_id)
    books.log.consume()
    sources = shop.books(books.log.store)

    def run(as_of_ms: int) -> dict[str, tuple[str | None, int]]:
        outcome = increment(spark, sources, as_of_ms, tmp_path)
        everything = reconcile(Reading(spark, True), sources, cut_off_at(as_of_ms), str(tmp_path / "all"))
        assert (told(outcome), sums(outcome)) == (told(everything), sums(everything))
        return {total.finding.value: (total.causes[0][0].value if total.causes else None, total.count) for total in sums(outcome)}

    assert run(AS_OF_MS) == {"matched": (None, 1), "in_flight": ("waiting", 2)}
    books.in_credits("DELETE FROM rocketmq_inbox WHERE message_key = 'orders ' || ? || ' 1'", "waits")
    books.credit("waits", AS_OF_MS)
    books.in_credits("UPDATE rocketmq_inbox SET status = 'PARKED' WHERE message_key = 'orders ' || ? || ' 1'", "parks")
    books.store("settled", at_ms=AS_OF_MS, copy=2)
    assert run(AS_OF_MS + 1) == {"matched": (None, 2), "missing_credit": ("parked", 1)}
    assert run(AS_OF_MS + 200_000) == {
        "matched": (None, 1), "in_flight": ("waiting", 1), "missing_credit": ("parked", 1)
    }  # fmt: skip
    shop.credits.execute("DELETE FROM rocketmq_inbox")
    books.credit("parks", AS_OF_MS + 200_000)
    assert run(AS_OF_MS + 200_001) == {"matched": (None, 3)}


@pytest.mark.release
def test_increments_hold_repairs_to_their_audit_once_they_are_old(
    spark: SparkSession, tmp_path: Path, shop: ShopDatabases
) -> None:
    books = BrokenBooks(shop, LogWriter(tmp_path / "store"))
    for order_id, message_id in (("known", "repair 1"), ("unknown", "repair 2")):
        books.health(order_id)
        books.cancel(order_id)
        books.reverse(order_id, message_id=message_id, is_audited=order_id == "known")
    books.in_credits(f"UPDATE credits SET created_at_ms = {AS_OF_MS - 1} WHERE order_id = ? AND kind = 'reversal'", "unknown")
    books.log.consume()
    books.write_audit(audit := tmp_path / "audit.jsonl")
    believing = shop.books(books.log.store)
    audited = replace(believing, read_repairs=partial(known_repairs, [audit]))

    def run(sources: Books, as_of_ms: int) -> dict[str, int]:
        return counts(increment(spark, sources, as_of_ms, tmp_path))

    assert run(audited, AS_OF_MS) == {"reversed": 1, "in_flight": 1}
    assert run(audited, AS_OF_MS + 200_000) == {"reversed": 1, "reversal_mismatch": 1}
    with pytest.raises(
        StateUnusable, match=r"belongs to other databases or stores \(audit: given before, None now\); use --full$"
    ):
        run(believing, AS_OF_MS + 300_000)
    books.audited = [("2", Action.REVERSE, "unknown")]
    books.write_audit(audit)
    assert run(audited, AS_OF_MS + 400_000) == {"reversed": 2}
