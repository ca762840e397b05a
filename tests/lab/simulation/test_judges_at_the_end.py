"""Tests the auditor and the liveness judge.

Correct databases and logs cause no violation, and each defect causes its own violation.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest

from lab.simulation.judges.agreement import disagreements
from lab.simulation.judges.audit import AuditReport, audit
from lab.simulation.judges.books import read_store
from lab.simulation.judges.liveness import LivenessReport, judge_end
from lab.simulation.judges.violation import OrderVerdict, Promise
from pipelines.judging.classes import Finding
from rocketmq_broker.message import MessageExt, properties, topics
from rocketmq_broker.message.record import decode_record, to_message
from rocketmq_broker.testing.transactions import Transaction
from rocketmq_commitlog.commit_log import Damage, LogRecord
from tests.lab.simulation.small_world import GROUPS, SmallWorld, databases, play
from tests.stored_records import encoded

Told = dict[Promise, set[str]]
"""The broken promises, each with the orders or customers that it names."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallWorld, Path]:
    """Plays a world once. Tests break copies of it."""
    folder = tmp_path_factory.mktemp("played")
    with databases(folder) as world:
        asyncio.run(play(world, folder))
    return world, folder


@pytest.fixture
def small(played: tuple[SmallWorld, Path], tmp_path: Path) -> Iterator[SmallWorld]:
    world, folder = played
    for path in folder.glob("*.db"):
        copy(path, tmp_path)
    with databases(tmp_path) as again:
        kept = {name: getattr(again, name) for name in ("orders", "credits", "stock")}
        yield replace(world, files=dict(world.files), **kept)


def reports(small: SmallWorld) -> tuple[AuditReport, LivenessReport]:
    books = small.read()
    named = small.lists.names_of("credit_service")
    return audit(books, small.cut_off, named), judge_end(books, small.lists, small.told, GROUPS)


def broken(small: SmallWorld) -> Told:
    """Returns the violations that the judges find: the affected customers of each promise."""
    customers = small.told
    by_audit, liveness = reports(small)
    found: Told = {}
    for one in (*by_audit.violations, *liveness.violations, *disagreements(by_audit, liveness)):
        named = {customers.get(key, key) for key in one.keys}
        found.setdefault(Promise(one.promise), set()).update(named & {*customers.values(), "nobody"} or named)
    return found


def test_right_books_give_no_violation_and_all_orders_are_settled(small: SmallWorld) -> None:
    assert broken(small) == {}
    by_audit, liveness = reports(small)
    assert set(by_audit.findings) == set(small.told)
    assert set(liveness.verdicts.values()) == {OrderVerdict.SETTLED}
    told = {small.told[order_id]: finding for order_id, finding in by_audit.findings.items()}
    assert told["dan"] is Finding.ENDED
    assert told["eve"] is told["fay"] is Finding.REVERSED
    assert told["ada"] is told["bob"] is told["cy"] is Finding.MATCHED


def test_damage_is_accepted_only_where_bytes_were_not_synced(small: SmallWorld) -> None:
    (path,) = (path for path in small.files if path.parent.name == "commitlog")
    sound = read_store(small.files).records
    damaged = sound[4]
    assert isinstance(damaged, LogRecord)
    begins, ends = damaged.commit_log_offset, damaged.commit_log_offset + damaged.size
    content = bytearray(small.files[path])
    content[ends - 20 : ends] = bytes(20)
    small.files[path] = bytes(content)

    def damage(*unsynced: range) -> list[Damage]:
        records = read_store(small.files, [(path, lost) for lost in unsynced]).records
        assert [record for record in records if isinstance(record, LogRecord)] == [*sound[:4], *sound[5:]]
        return [record for record in records if isinstance(record, Damage)]

    assert damage(range(begins, ends)) == damage(range(ends - 20, len(content))) == []
    assert damage() == damage(range(ends, len(content)), range(begins), range(begins, ends - 1)) == [Damage(begins, damaged.size)]
    assert any("damaged" in violation.text for violation in reports(small)[0].violations)


def test_a_credit_that_is_lost_is_found_by_both_judges(small: SmallWorld) -> None:
    small.in_credits("DELETE FROM credits WHERE customer = 'ada'")
    small.in_credits("UPDATE balances SET points = 0 WHERE customer = 'ada'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"ada"}, Promise.ORDER_HAS_CREDIT: {"ada"}}


def test_a_second_credit_is_found_by_both_judges(small: SmallWorld) -> None:
    small.in_credits("UPDATE balances SET points = 2 * points WHERE customer = 'bob'")
    small.in_credits("UPDATE credits SET points = 2 * points WHERE customer = 'bob'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"bob"}, Promise.ORDER_HAS_CREDIT: {"bob"}}


def test_a_reversal_that_is_missing_is_found_by_both_judges(small: SmallWorld) -> None:
    small.in_credits("DELETE FROM credits WHERE customer = 'eve' AND kind = 'reversal'")
    small.in_credits("UPDATE balances SET points = 10 WHERE customer = 'eve'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"eve"}, Promise.ORDER_HAS_CREDIT: {"eve"}}


def test_a_wrong_balance_is_found_by_the_auditor(small: SmallWorld) -> None:
    small.in_credits("UPDATE balances SET points = points + 1 WHERE customer = 'cy'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"cy"}}


def test_a_credit_whose_order_is_gone_breaks_what_the_customer_was_told(small: SmallWorld) -> None:
    order_id = small.order_id("ada")
    for table in ("order_items", "orders"):
        with small.orders.begin() as connection:
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE order_id = ?", (order_id,))
    assert broken(small) == {
        Promise.BOOKS_AGREE: {"ada"},
        Promise.CREDIT_HAS_ORDER: {"ada"},
        Promise.TOLD_ORDER_IS_KEPT: {"ada"},
        Promise.ORDER_HAS_SHIPMENT: {"ada"},
    }


def test_a_state_that_was_flipped_is_found(small: SmallWorld) -> None:
    small.in_orders("UPDATE orders SET state = 'PLACED' WHERE customer = 'eve'")
    assert broken(small) == {
        Promise.BOOKS_AGREE: {"eve"},
        Promise.ORDER_HAS_CREDIT: {"eve"},
        Promise.ORDER_HAS_SHIPMENT: {"eve"},
    }


def test_an_order_that_awaits_its_payment_for_ever_is_pending(small: SmallWorld) -> None:
    small.in_orders("UPDATE orders SET state = 'AWAITING_PAYMENT', ended_at_ms = NULL WHERE customer = 'dan'")
    small.in_orders("UPDATE transactions SET state = 'PENDING' WHERE order_id = :it", it=small.order_id("dan"))
    assert broken(small) == {Promise.BOOKS_AGREE: {"dan"}, Promise.NOTHING_PENDING: {"dan"}}


def test_a_shipment_that_is_missing_is_found(small: SmallWorld) -> None:
    order_id = small.order_id("fay")
    small.in_stock("DELETE FROM shipments WHERE order_id = :it", it=order_id)
    assert broken(small) == {Promise.ORDER_HAS_SHIPMENT: {"fay"}}


@pytest.mark.parametrize("state", ["SHORT", "RETURNED", "CALLED_OFF"])
def test_an_order_that_stands_is_shipped(small: SmallWorld, state: str) -> None:
    small.in_stock(f"UPDATE shipments SET state = '{state}' WHERE order_id = :it", it=small.order_id("ada"))
    assert broken(small) == {Promise.ORDER_HAS_SHIPMENT: {"ada"}}


def test_a_shipment_takes_from_stock_what_the_order_wants(small: SmallWorld) -> None:
    small.in_stock("UPDATE shipment_lines SET quantity = 2 WHERE order_id = :it", it=small.order_id("ada"))
    assert broken(small) == {Promise.ORDER_HAS_SHIPMENT: {"ada"}}


def test_a_message_that_is_gone_from_the_log_is_found_by_the_auditor(small: SmallWorld) -> None:
    path = next(path for path in small.files if path.parent.name == "commitlog")
    last = small.read().stores["broker-a"].records[-1]
    small.files[path] = small.files[path][: last.commit_log_offset]
    found = broken(small)
    assert Promise.ORDER_HAS_CREDIT not in found
    assert Promise.BOOKS_AGREE in found or last.topic == topics.OP_HALF_TOPIC.encode()


def test_a_message_that_nobody_acknowledged_is_pending(small: SmallWorld) -> None:
    path = next(path for path in small.files if path.name == "consumerOffset.json")
    small.files[path] = b"{}"
    found = broken(small)
    assert found.keys() == {Promise.NOTHING_PENDING}
    assert {"ada", "bob", "cy", "eve", "fay"} == found[Promise.NOTHING_PENDING]


def record_of(topic: str, order_id: str, commit_log_offset: int = 0) -> bytes:
    """Returns a record of the order's message in that topic."""
    named = {properties.KEYS: order_id, properties.UNIQUE_KEY: f"U-{order_id}", properties.REAL_TOPIC: "orders"}
    return encoded(topic, b"{}", named, commit_log_offset=commit_log_offset, store_timestamp=1)


def appended(small: SmallWorld, topic: str, order_id: str) -> None:
    """Appends a record of the order to the log, as a message that waits for a person."""
    path = next(path for path in small.files if path.parent.name == "commitlog")
    last = small.read().stores["broker-a"].records[-1]
    end = last.commit_log_offset + last.size
    record = record_of(topic, order_id, end)
    data = small.files[path]
    small.files[path] = data[:end] + record + data[end + len(record) :]


def test_a_dead_letter_that_no_list_names_is_found(small: SmallWorld) -> None:
    appended(small, "%DLQ%credit_service", small.order_id("ada"))
    assert broken(small) == {Promise.LISTED_FOR_A_PERSON: {"ada"}}


def test_judges_that_disagree_are_a_violation(small: SmallWorld) -> None:
    by_audit, liveness = reports(small)
    order_id = small.order_id("ada")
    other = replace(liveness, verdicts={**liveness.verdicts, order_id: OrderVerdict.BROKEN})
    (violation,) = disagreements(by_audit, other)
    assert (violation.promise, violation.keys) == (Promise.JUDGES_AGREE, (order_id,))
    assert violation.text.startswith("The judges disagree: ")
    unknown = replace(by_audit, verdicts={"x": OrderVerdict.BROKEN}, findings={"x": Finding.CREDIT_WITHOUT_ORDER})
    assert [one.keys for one in disagreements(unknown, liveness)] == [("x",)]


def dead_letter(topic: str, order_id: str) -> MessageExt:
    """Returns a dead letter of the order, which waits for a person."""
    return to_message(decode_record(record_of(topic, order_id)), "broker-a")


def test_a_half_message_without_decision_is_pending(small: SmallWorld) -> None:
    order_id = small.order_id("ada")
    small.lists = replace(small.lists, pending=(Transaction("pending", "T", "orders", (order_id,), "order_service", 2, 5.0),))
    assert broken(small) == {Promise.NOTHING_PENDING: {"ada"}}


def test_an_order_without_its_credit_that_a_list_names_waits_for_a_person(small: SmallWorld) -> None:
    small.in_credits("DELETE FROM credits WHERE customer = 'ada'")
    small.in_credits("UPDATE balances SET points = 0 WHERE customer = 'ada'")
    small.lists = replace(small.lists, dead_letters=(dead_letter("%DLQ%credit_service", small.order_id("ada")),))
    assert broken(small) == {}
    assert OrderVerdict.WAITS_FOR_A_PERSON in reports(small)[1].verdicts.values()
    small.lists = replace(small.lists, dead_letters=(dead_letter("%DLQ%inventory_service", small.order_id("ada")),))
    assert broken(small) == {Promise.BOOKS_AGREE: {"ada"}, Promise.ORDER_HAS_CREDIT: {"ada"}}


def test_a_reversal_without_its_credit_waits_for_a_person_if_a_list_names_the_order(small: SmallWorld) -> None:
    small.in_credits("DELETE FROM credits WHERE customer = 'eve' AND kind = 'credit'")
    small.in_credits("UPDATE balances SET points = -10 WHERE customer = 'eve'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"eve"}, Promise.ORDER_HAS_CREDIT: {"eve"}}
    small.lists = replace(small.lists, dead_letters=(dead_letter("%DLQ%credit_service", small.order_id("eve")),))
    assert broken(small) == {}


def test_a_refusal_that_was_told_has_its_entry_in_the_ledger(small: SmallWorld) -> None:
    appended(small, "credit_refusals", small.order_id("ada"))
    assert broken(small) == {}
    small.in_credits("DELETE FROM credits WHERE customer = 'ada'")
    small.in_credits("UPDATE balances SET points = 0 WHERE customer = 'ada'")
    assert Promise.REFUSED_IS_CLOSED in broken(small)


def test_a_person_mends_only_what_is_missing(small: SmallWorld) -> None:
    """Two surplus points are a violation, even if the order has a dead letter that awaits an operator."""
    small.in_credits("UPDATE balances SET points = points + 2 WHERE customer = 'ada'")
    small.in_credits("UPDATE credits SET points = points + 2 WHERE customer = 'ada'")
    small.lists = replace(small.lists, dead_letters=(dead_letter("%DLQ%credit_service", small.order_id("ada")),))
    assert broken(small) == {Promise.BOOKS_AGREE: {"ada"}, Promise.ORDER_HAS_CREDIT: {"ada"}}
