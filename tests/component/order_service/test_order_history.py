"""Tests that only a database that contains the half message's witness rolls it back, and not an older copy."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from order_messages.states import OrderState, TransactionKind, TransactionState
from order_service.adapters import order_history
from order_service.adapters.order_history import MAX_AGE_MS
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.domain.history import Witness
from order_service.domain.life_cycle import OrderEvent
from order_service.service_layer.order_store import HistoryDoubted
from rocketmq_broker.world import World
from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.database.opening import open_database
from tests.component.order_service.conftest import DEADLINE_MS, PLACED_AT_MS, a_cancellation, a_later_order, an_order
from tests.e2e import backups
from tests.passing_time import Clock

COMMITTED, PENDING, ROLLED_BACK = TransactionState.COMMITTED, TransactionState.PENDING, TransactionState.ROLLED_BACK


def witness_of(store: SqlOrderStore) -> Witness:
    """Returns the current witness. Does not use `Witness.read`, because the tests' ids contain a hyphen."""
    _, database_id, epoch_id, renewed_at_ms, transaction_id = store.history.witness().split(":")
    return Witness(database_id, epoch_id, int(renewed_at_ms), transaction_id)


def is_doubted(store: SqlOrderStore, number: int, witness: Witness) -> bool:
    """Returns True if the store does not decide a half message that it lacks, because of this witness."""
    try:
        store.settle(f"transaction-{number}", f"order-{number}", witness=witness)
    except HistoryDoubted:
        return True
    return False


@pytest.fixture
def clock() -> Clock:
    return Clock(PLACED_AT_MS)


@pytest.fixture
def original(engine: Engine, clock: Clock) -> SqlOrderStore:
    return SqlOrderStore(engine, clock.world())


OpenCopy = Callable[[], SqlOrderStore]


@pytest.fixture
def copied(engine: Engine, clock: Clock) -> Iterator[OpenCopy]:
    """Yields a function that copies the database and opens a store on the copy, like another process."""
    opened: list[Engine] = []

    def copy() -> SqlOrderStore:
        opened.append(open_database(_copy_of(engine, len(opened)), migrations=MIGRATIONS, start_timeout_s=10))
        return SqlOrderStore(opened[-1], clock.world())

    yield copy
    for one in opened:
        one.dispose()


@pytest.fixture
def overdue(original: SqlOrderStore, copied: OpenCopy, clock: Clock) -> tuple[SqlOrderStore, Witness]:
    """Returns a copy of the database, and the witness in the half message of its only order.

    The order is overdue in the copy. In the original it was paid after the copy was made.
    """
    of_order = witness_of(original)
    original.store_order(a_later_order(), "transaction-1")
    copy = copied()
    original.change_unpaid("order-1", OrderEvent.PAY, PLACED_AT_MS)
    clock.now_ms += MAX_AGE_MS
    return copy, of_order


def _copy_of(engine: Engine, number: int) -> str:
    if engine.dialect.name == "sqlite":
        path = f"{engine.url.database}.{number}"
        backups.copied(Path(str(engine.url.database)), Path(path))
        return f"sqlite:///{path}"
    engine.dispose()  # PostgreSQL copies only what nobody uses
    name = f"{engine.url.database}_{number}"
    url = engine.url.set(database=name)
    with psycopg.connect(
        host=url.host, port=url.port or 5432, user=url.username, dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {engine.url.database}".encode())
    return url.render_as_string(hide_password=False)


def test_the_sender_s_own_database_rolls_back_what_it_lacks_also_after_a_restart(
    original: SqlOrderStore, engine: Engine, clock: Clock
) -> None:
    original.store_order(an_order(), "transaction-1")
    witness = witness_of(original)
    assert witness.transaction_id == "transaction-1"
    again = SqlOrderStore(engine, clock.world())
    assert again.settle("transaction-2", "order-2", witness=witness) is ROLLED_BACK
    assert again.settle("transaction-1", "order-1", witness=witness) is COMMITTED
    assert again.history.why_unready() is None


def test_a_copy_that_is_older_than_the_sender_s_first_order_does_not_decide(original: SqlOrderStore, copied: OpenCopy) -> None:
    copy = copied()
    witness = witness_of(original)
    original.store_order(an_order(), "transaction-1")
    with pytest.raises(HistoryDoubted, match="old copy"):
        copy.settle("transaction-1", "order-1", witness=witness)
    assert copy.find_transaction("transaction-1") is None
    assert "old copy" in (copy.history.why_unready() or "")
    assert original.settle("transaction-1", "order-1", witness=witness) is COMMITTED


def test_a_copy_that_is_older_than_a_second_does_not_decide(original: SqlOrderStore, copied: OpenCopy, clock: Clock) -> None:
    witness_of(original)
    copy = copied()
    clock.now_ms += MAX_AGE_MS
    assert is_doubted(copy, 1, witness_of(original))


def test_a_copy_that_is_older_than_the_newest_local_commit_does_not_decide(original: SqlOrderStore, copied: OpenCopy) -> None:
    witness_of(original)
    copy = copied()
    original.store_order(an_order(), "transaction-1")
    assert is_doubted(copy, 2, witness_of(original))


def test_a_cancellation_is_not_rolled_back_by_an_old_copy(original: SqlOrderStore, copied: OpenCopy) -> None:
    original.store_order(an_order(), "transaction-1")
    copy = copied()
    witness = witness_of(original)
    original.store_cancellation(a_cancellation(), "transaction-2")
    with pytest.raises(HistoryDoubted):
        copy.settle("transaction-2", "order-1", TransactionKind.CANCELLATION, witness)
    assert original.settle("transaction-2", "order-1", TransactionKind.CANCELLATION, witness) is COMMITTED


def test_what_an_old_copy_has_it_decides(original: SqlOrderStore, copied: OpenCopy, clock: Clock) -> None:
    original.store_order(an_order(), "transaction-1")
    original.settle("transaction-2")
    copy = copied()
    clock.now_ms += MAX_AGE_MS
    witness = witness_of(original)
    assert copy.settle("transaction-1", "order-1", witness=witness) is COMMITTED
    assert copy.settle("transaction-2", "order-2", witness=witness) is ROLLED_BACK


def test_an_empty_database_decides_nothing_of_another_one(original: SqlOrderStore, clock: Clock, tmp_path: Path) -> None:
    empty_engine = open_database(f"sqlite:///{tmp_path}/empty.db", migrations=MIGRATIONS, start_timeout_s=10)
    empty = SqlOrderStore(empty_engine, clock.world())
    witness = witness_of(original)
    assert witness_of(empty).database_id != witness.database_id
    with pytest.raises(HistoryDoubted, match=f"name the order database {witness.database_id}, but this one is [0-9a-f]{{32}}"):
        empty.settle("transaction-1", "order-1", witness=witness)
    with pytest.raises(HistoryDoubted):
        witness_of(empty)
    empty_engine.dispose()


def test_two_members_of_a_group_on_two_copies_decide_for_their_own_half_messages_only(
    original: SqlOrderStore, copied: OpenCopy
) -> None:
    original.store_order(an_order(), "transaction-1")
    copy = copied()
    of_original, of_copy = witness_of(original), witness_of(copy)
    assert is_doubted(original, 2, of_copy)
    assert original.settle("transaction-3", "order-3", witness=of_original) is ROLLED_BACK
    copy.store_order(an_order("order-4"), "transaction-4")
    assert copy.settle("transaction-5", "order-5", witness=witness_of(copy)) is ROLLED_BACK


def test_an_overdue_order_does_not_expire_in_a_copy_in_which_its_payment_may_be_missing(
    original: SqlOrderStore, overdue: tuple[SqlOrderStore, Witness]
) -> None:
    copy, of_order = overdue
    assert is_doubted(copy, 2, witness_of(original))
    assert copy.settle("transaction-1", "order-1", witness=of_order) is PENDING
    with pytest.raises(HistoryDoubted):
        copy.expire_if_overdue("transaction-1", DEADLINE_MS, of_order)
    assert copy.find_transaction("transaction-1") is PENDING
    assert original.settle("transaction-1", "order-1", witness=of_order) is COMMITTED


def test_an_overdue_order_of_another_process_waits_until_a_doubt_about_another_one_has_come(
    original: SqlOrderStore, overdue: tuple[SqlOrderStore, Witness]
) -> None:
    copy, of_order = overdue
    assert copy.expire_if_overdue("transaction-1", DEADLINE_MS, of_order) is PENDING
    assert is_doubted(copy, 2, witness_of(original))
    with pytest.raises(HistoryDoubted):
        copy.expire_if_overdue("transaction-1", DEADLINE_MS, of_order)


def test_an_overdue_order_of_another_process_expires_at_the_second_check_back(original: SqlOrderStore, copied: OpenCopy) -> None:
    of_order = witness_of(original)
    original.store_order(a_later_order(), "transaction-1")
    after = copied()
    states = [after.expire_if_overdue("transaction-1", DEADLINE_MS, of_order) for _ in range(2)]
    assert states == [PENDING, ROLLED_BACK]


def test_no_request_ends_an_order_in_a_copy_in_which_its_payment_may_be_missing(
    original: SqlOrderStore, copied: OpenCopy, clock: Clock
) -> None:
    witness_of(original)
    for number in (1, 2):
        original.store_order(a_later_order(f"order-{number}"), f"transaction-{number}")
    copy = copied()
    clock.now_ms += MAX_AGE_MS
    assert is_doubted(copy, 3, witness_of(original))
    with pytest.raises(HistoryDoubted):
        copy.change_unpaid("order-1", OrderEvent.PAY, DEADLINE_MS)
    with pytest.raises(HistoryDoubted):
        copy.change_unpaid("order-1", OrderEvent.CANCEL, PLACED_AT_MS, "too dear")
    assert copy.find_transaction("transaction-1") is PENDING
    assert getattr(copy.change_unpaid("order-2", OrderEvent.PAY, PLACED_AT_MS), "state", None) is OrderState.PAID
    assert copy.settle("transaction-2", "order-2") is COMMITTED


def test_a_half_message_without_a_witness_is_decided_unless_another_one_gave_a_reason_to_doubt(
    original: SqlOrderStore, copied: OpenCopy
) -> None:
    copy = copied()
    assert copy.settle("transaction-1", "order-1") is ROLLED_BACK
    assert is_doubted(copy, 2, witness_of(original))
    with pytest.raises(HistoryDoubted):
        copy.settle("transaction-3", "order-3")


def test_a_history_that_is_adopted_decides_for_what_was_sent_until_then(
    original: SqlOrderStore, copied: OpenCopy, clock: Clock
) -> None:
    copy = copied()
    before = witness_of(original)
    assert is_doubted(copy, 1, before)
    assert copy.history.adopt("restored from the backup of Monday") == PLACED_AT_MS
    assert copy.history.why_unready() is None
    assert copy.settle("transaction-1", "order-1", witness=before) is ROLLED_BACK
    clock.now_ms += MAX_AGE_MS
    assert is_doubted(copy, 2, witness_of(original))


def test_the_doubt_ends_once_the_database_holds_what_it_lacked(original: SqlOrderStore, engine: Engine, clock: Clock) -> None:
    late = replace(witness_of(original), transaction_id="transaction-1")
    assert is_doubted(original, 2, late)
    SqlOrderStore(engine, clock.world()).store_order(an_order(), "transaction-1")
    assert original.history.why_unready() is None
    assert original.settle("transaction-2", "order-2", witness=late) is ROLLED_BACK


def test_a_database_that_is_put_back_beneath_a_process_is_noticed_at_the_next_order(
    original: SqlOrderStore, engine: Engine, clock: Clock
) -> None:
    first = witness_of(original)
    backup = first.renewed_at_ms
    clock.now_ms += MAX_AGE_MS
    in_flight = witness_of(original)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE epochs SET renewed_at_ms = {backup}"))
    clock.now_ms += MAX_AGE_MS
    for _ in range(2):
        with pytest.raises(HistoryDoubted, match="old copy"):
            witness_of(original)
    assert "old copy" in (original.history.why_unready() or "")
    assert is_doubted(original, 1, in_flight)
    original.history.adopt("the backup is the truth now")
    assert witness_of(original).epoch_id != first.epoch_id
    assert original.settle("transaction-2", "order-2", witness=witness_of(original)) is ROLLED_BACK


@pytest.mark.parametrize("is_rolled_back", [False, True])
def test_a_promoted_standby_that_lacks_less_than_a_second_is_noticed_although_it_took_an_order(
    original: SqlOrderStore, engine: Engine, clock: Clock, is_rolled_back: bool
) -> None:
    first = witness_of(original)
    original.store_order(an_order(), "transaction-1")
    with engine.begin() as connection:
        for table in ("transactions", "order_items", "orders"):
            connection.execute(text(f"DELETE FROM {table}"))
    if is_rolled_back:
        assert original.settle("transaction-1", "order-1", witness=first) is ROLLED_BACK
    original.store_order(an_order("order-2"), "transaction-2")
    clock.now_ms += MAX_AGE_MS
    with pytest.raises(HistoryDoubted, match="old copy"):
        witness_of(original)
    original.history.adopt("the standby is the truth now")
    assert witness_of(original).transaction_id == ""
    assert original.history.why_unready() is None


def test_orders_of_one_second_share_what_was_written(original: SqlOrderStore, engine: Engine, clock: Clock) -> None:
    first = witness_of(original)
    clock.now_ms += MAX_AGE_MS - 1
    assert witness_of(original) == first
    clock.now_ms += 1
    assert witness_of(original).renewed_at_ms == first.renewed_at_ms + MAX_AGE_MS
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM epochs")) == 1


def test_a_clock_that_is_set_back_never_makes_a_witness_older(original: SqlOrderStore, clock: Clock) -> None:
    first = witness_of(original)
    clock.now_ms -= 3_600_000
    second = witness_of(original)
    assert second.renewed_at_ms == first.renewed_at_ms + 1
    clock.now_ms += MAX_AGE_MS - 1
    assert witness_of(original) == second


def test_first_orders_that_come_at_once_begin_one_epoch(original: SqlOrderStore) -> None:
    with ThreadPoolExecutor(8) as requests:
        assert len({witness.epoch_id for witness in requests.map(lambda _: witness_of(original), range(8))}) == 1


def test_a_database_that_only_reads_confirms_what_it_has_and_rolls_nothing_back(original: SqlOrderStore, engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("a read replica is PostgreSQL's")
    witness = witness_of(original)
    original.store_order(an_order(), "transaction-1")
    url = engine.url.update_query_dict({"options": "-c default_transaction_read_only=on"})
    replica_engine = open_database(
        url.render_as_string(hide_password=False), migrations=MIGRATIONS, start_timeout_s=10, is_migrated=False
    )
    replica = SqlOrderStore(replica_engine, World())
    assert replica.settle("transaction-1", "order-1", witness=witness) is COMMITTED
    with pytest.raises(DatabaseUnavailable, match="read-only"):
        replica.settle("transaction-2", "order-2", witness=witness)
    assert original.find_transaction("transaction-2") is None
    replica_engine.dispose()


@pytest.mark.parametrize("transaction_id", ["", "C000020243DBCE5C358A722452BA0052"])
def test_a_witness_is_read_as_it_was_written(transaction_id: str) -> None:
    witness = Witness("0" * 32, "f" * 32, PLACED_AT_MS, transaction_id)
    assert Witness.read(witness.encode()) == witness


@pytest.mark.parametrize("value", ["", "2:x", f"1:{'0' * 32}:{'f' * 32}:{'9' * 19}:", f"1:{'0' * 32}:{'f' * 32}:1:a\n"])
def test_a_witness_that_cannot_be_read_is_held_by_no_database(value: str, original: SqlOrderStore) -> None:
    witness_of(original)
    with pytest.raises(HistoryDoubted):
        original.settle("transaction-1", "order-1", witness=Witness.read(value))


def test_an_overdue_order_expires_in_the_database_that_holds_what_its_half_message_names(original: SqlOrderStore) -> None:
    original.store_order(a_later_order(), "transaction-1")
    assert original.expire_if_overdue("transaction-1", DEADLINE_MS, witness_of(original)) is ROLLED_BACK
    assert getattr(original.find_order("order-1"), "state", None) is OrderState.EXPIRED


def test_the_check_backs_that_are_remembered_are_bounded(original: SqlOrderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_history, "_MAX_ASKED", 2)
    elsewhere = replace(witness_of(original), epoch_id="another process")
    was_asked = [original.history.was_asked_before(transaction, elsewhere) for transaction in ("t1", "t2", "t3", "t1", "t3")]
    assert was_asked == [False, False, False, False, True]
