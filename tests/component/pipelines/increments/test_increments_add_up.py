"""Tests that increments add up.

Kept rows can be grouped again, settled histories stay settled, and each row is kept once. The tests do not use
Spark. The judge's SQL runs in SQLite, and marks are computed on growing databases. `test_increments` runs whole
increments.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.increments.marks import Marks, next_marks
from pipelines.judging.classes import CONSISTENT
from pipelines.judging.cut_off import CutOff
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.judging.sqlite_judge import group, judge
from tests.unit.pipelines.judging.stories import CUT_OFF, FAULTS, HEALTHY, Event

STORIES = HEALTHY | FAULTS
EVENTS = [event for story in (tell("a") for tell in STORIES.values()) for event in story.events]
EARLIER_MS = st.integers(0, 20_000_000)
"""How long before the last run: before or after what the stories tell was young, or was overdue."""


def earlier(by_ms: int) -> CutOff:
    return CutOff(CUT_OFF.as_of_ms - by_ms, CUT_OFF.grace_seconds, CUT_OFF.overdue_seconds)


def by_order(rows: Sequence[Event]) -> dict[object, Event]:
    return {row["order_id"] or row["unnamed"]: row for row in rows}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.sampled_from(sorted(STORIES)), min_size=1, max_size=12),
    st.lists(st.tuples(EARLIER_MS, st.booleans()), max_size=4),
    st.data(),
)
def test_runs_over_what_is_new_find_what_one_run_over_everything_finds(
    names: list[str], runs: list[tuple[int, bool]], data: st.DataObject
) -> None:
    """Several runs over new events have the same findings as one run over all events.

    The events are divided arbitrarily, and may be late. Some runs find nothing new. Each run judges open histories again, and
    settled histories that get a new event.
    """
    stories = [STORIES[name](f"order-{number}") for number, name in enumerate(names)]
    events = [event for story in stories for event in story.events]
    marked = [marker for story in stories for marker in story.markers]
    cut_offs = [earlier(by_ms) for by_ms in sorted((by_ms for by_ms, _ in runs), reverse=True)] + [CUT_OFF]
    in_run = data.draw(st.lists(st.integers(0, len(runs)), min_size=len(events), max_size=len(events)))
    is_open: dict[object, Event] = {}
    is_settled: dict[object, Event] = {}
    verdicts: dict[object, tuple[object, object]] = {}
    for number, cut_off in enumerate(cut_offs):
        new = [event for event, run in zip(events, in_run, strict=True) if run == number]
        touched = {event.get("order_id") or event.get("unnamed") for event in new}
        kept = by_order(group([*is_open.values(), *[is_settled[key] for key in touched & is_settled.keys()], *new]))
        judged = by_order(judge(kept.values(), cut_off, 0, marked))
        verdicts |= {key: (row["finding"], row["cause"]) for key, row in judged.items()}
        is_open = {key: row for key, row in kept.items() if not judged[key]["is_settled"]}
        is_settled |= {key: row for key, row in kept.items() if judged[key]["is_settled"]}
        is_settled = {key: row for key, row in is_settled.items() if key not in is_open}
    everything = by_order(judge(events, CUT_OFF, 0, marked))
    assert verdicts == {key: (row["finding"], row["cause"]) for key, row in everything.items()}


@settings(deadline=None, max_examples=80)
@given(st.lists(st.sampled_from(range(len(EVENTS))), min_size=1, max_size=8), EARLIER_MS, st.booleans(), st.booleans())
def test_what_is_settled_is_healthy_for_good(indexes: list[int], by_ms: int, is_marked: bool, has_store: bool) -> None:
    """Neither time nor a ROLLED_BACK marker changes the class or cause of a settled history, for any combination of events."""
    events = [EVENTS[index] for index in indexes]
    log_begins_ms = 0 if has_store else None
    before = by_order(judge(events, earlier(by_ms), log_begins_ms, ["T-a"] if is_marked else []))
    for markers in ([], ["T-a"]):
        now = by_order(judge(events, CUT_OFF, log_begins_ms, markers))
        for key, row in before.items():
            if row["is_settled"]:
                assert row["finding"] in CONSISTENT
                assert (now[key]["finding"], now[key]["cause"], now[key]["is_settled"]) == (row["finding"], row["cause"], 1)


GRACE_S = 10


@dataclass(frozen=True)
class Placed:
    """The time of an order, the duration of its database transaction, and the time until its payment."""

    at_ms: int
    takes_ms: int
    awaits_ms: int

    def is_visible(self, as_of_ms: int) -> bool:
        return self.at_ms + self.takes_ms <= as_of_ms

    def is_awaiting(self, as_of_ms: int) -> bool:
        return as_of_ms < self.at_ms + self.awaits_ms


PLACED = st.builds(
    Placed,
    at_ms=st.integers(1, 60_000),
    takes_ms=st.one_of(st.just(0), st.integers(0, GRACE_S * 1000)),
    awaits_ms=st.one_of(st.just(0), st.integers(0, 60_000)),
)
Row = tuple[str, int, str]
"""Table, id (of transactions: time), and state."""


class GrowingShop:
    """Databases whose rows get their ids in the order of their times, and become visible later, in any order."""

    def __init__(self, shop: ShopDatabases, placed: Sequence[Placed]) -> None:
        self._placed = sorted(placed, key=lambda each: each.at_ms)
        self._shop = shop
        self.orders, self.credits = shop.order_database, shop.credit_database

    def show(self, as_of_ms: int) -> None:
        """Replaces all rows with those that are visible at this time."""
        for database, tables in (
            (self._shop.orders, ("orders", "order_items", "transactions")),
            (self._shop.credits, ("credits",)),
        ):
            for table in tables:
                database.execute(f"DELETE FROM {table}")
        for number, placed in enumerate(self._placed, start=1):
            if placed.is_visible(as_of_ms):
                self._add(number, placed, placed.is_awaiting(as_of_ms))
        self._shop.orders.commit()
        self._shop.credits.commit()

    def _add(self, number: int, placed: Placed, is_awaiting: bool) -> None:
        named = (number, f"order-{number}")
        order_state, state = ("AWAITING_PAYMENT", "PENDING") if is_awaiting else ("PLACED", "COMMITTED")
        self._shop.orders.execute(
            "INSERT INTO orders (id, order_id, created_at_ms, state) VALUES (?, ?, ?, ?)", (*named, placed.at_ms, order_state)
        )
        self._shop.orders.execute("INSERT INTO order_items (id, order_id) VALUES (?, ?)", named)
        self._shop.orders.execute(
            "INSERT INTO transactions VALUES (?, ?, ?, ?, 'order')", (*map(str, named), state, placed.at_ms)
        )
        self._shop.credits.execute("INSERT INTO credits (id, order_id, created_at_ms) VALUES (?, ?, ?)", (*named, placed.at_ms))

    def rows(self, after: Marks, until: Marks | None = None) -> list[Row]:
        """Returns the rows above the marks `after`, up to the marks `until` if given."""
        found = []
        for database, table, column, state, mark in (
            (self._shop.orders, "orders", "id", "state", "orders"),
            (self._shop.orders, "order_items", "id", "''", "items"),
            (self._shop.orders, "transactions", "created_at_ms", "state", "transactions_ms"),
            (self._shop.credits, "credits", "id", "''", "credits"),
        ):
            highest = 2**63 - 1 if until is None else getattr(until, mark)
            query = f"SELECT CAST({'transaction_id' if table == 'transactions' else 'id'} AS INTEGER), {state} FROM {table}"
            where = f" WHERE {column} > ? AND {column} <= ?"
            found += [(table, *row) for row in database.execute(query + where, (getattr(after, mark), highest))]
        return sorted(found)


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShopDatabases]:
    """Yields databases that are reused for all examples. `show` replaces all rows."""
    databases = ShopDatabases(tmp_path_factory.mktemp("shop"))
    for database in (databases.orders, databases.credits):
        database.execute("PRAGMA synchronous = OFF")
    yield databases
    databases.close()


@settings(deadline=None, max_examples=20)
@given(st.lists(PLACED, min_size=1, max_size=8), st.lists(st.integers(0, 80_000), min_size=1, max_size=5))
@example([Placed(1_000, 9_000, 0), Placed(1_001, 0, 0)], [5_000, 11_001])
@example([Placed(1_000, 0, 30_000), Placed(1_001, 0, 0)], [20_000, 40_000])
def test_each_row_is_read_for_good_once_and_in_its_last_state(
    databases: ShopDatabases, placed: list[Placed], runs: list[int]
) -> None:
    """Each row is kept exactly once, with its last values.

    This holds for database transactions of any duration up to the grace period, and for any times of the runs.
    """
    shop = GrowingShop(databases, placed)
    kept: list[Row] = []
    before = Marks()
    for as_of_ms in [*sorted(runs), 200_000]:
        shop.show(as_of_ms)
        cut_off = CutOff(as_of_ms, GRACE_S)
        marks = next_marks(before, shop.orders, shop.credits, (), cut_off)
        assert next_marks(marks, shop.orders, shop.credits, (), cut_off) == marks, "a run that repeats it reads nothing for good"
        kept += shop.rows(before, marks)
        assert sorted(kept + shop.rows(marks)) == shop.rows(Marks())
        before = marks
    assert shop.rows(before) == []
