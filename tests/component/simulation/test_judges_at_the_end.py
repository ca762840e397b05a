"""The auditor and liveness: right books give no violation, and each broken book its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.judging.classes import Finding
from pipelines.judging.without_spark.auditing import audited
from rocketmq_broker.message import properties, topics
from rocketmq_broker.message.record import encode_record, host_bytes
from simulation.judges.agreement import disagreements
from simulation.judges.audit import AuditReport, audit
from simulation.judges.books import ROUTE
from simulation.judges.broker_lists import BrokerLists
from simulation.judges.liveness import LivenessReport, judge_end
from simulation.judges.order_verdict import OrderVerdict
from simulation.judges.violation import Promise
from tests.component.simulation.small_world import GROUPS, SmallWorld, databases, play

Told = dict[Promise, set[str]]
"""The broken promises, each with the orders or customers that it names."""


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[SmallWorld]:
    with databases(tmp_path) as world:
        await play(world, tmp_path)
        yield world


def reports(small: SmallWorld) -> tuple[AuditReport, LivenessReport]:
    books = small.read()
    named = small.lists.names_of("credit_service")
    return audit(books, small.cut_off, named), judge_end(books, small.lists, small.told, GROUPS)


def broken(small: SmallWorld) -> Told:
    """What all judges find, by customer."""
    customers = small.told
    by_audit, liveness = reports(small)
    found: Told = {}
    for one in (*by_audit.violations, *liveness.violations, *disagreements(by_audit, liveness)):
        named = {customers.get(key, key) for key in one.keys}
        found.setdefault(Promise(one.promise), set()).update(named & {*customers.values(), "nobody"} or named)
    return found


async def test_right_books_give_no_violation_and_all_orders_are_settled(small: SmallWorld) -> None:
    assert broken(small) == {}
    by_audit, liveness = reports(small)
    assert set(by_audit.findings) == set(small.told)
    assert set(liveness.verdicts.values()) == {OrderVerdict.SETTLED}
    told = {small.told[order_id]: finding for order_id, finding in by_audit.findings.items()}
    assert told["dan"] is Finding.ENDED
    assert told["eve"] is told["fay"] is Finding.REVERSED
    assert told["ada"] is told["bob"] is told["cy"] is Finding.MATCHED


async def test_a_credit_that_is_lost_is_found_by_both_judges(small: SmallWorld) -> None:
    small.in_credits("DELETE FROM credits WHERE customer = 'ada'")
    small.in_credits("UPDATE balances SET points = 0 WHERE customer = 'ada'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"ada"}, Promise.ORDER_HAS_CREDIT: {"ada"}}


async def test_a_second_credit_is_found_by_both_judges(small: SmallWorld) -> None:
    small.in_credits("UPDATE balances SET points = 2 * points WHERE customer = 'bob'")
    small.in_credits("UPDATE credits SET points = 2 * points WHERE customer = 'bob'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"bob"}, Promise.ORDER_HAS_CREDIT: {"bob"}}


async def test_a_reversal_that_is_missing_is_found_by_both_judges(small: SmallWorld) -> None:
    small.in_credits("DELETE FROM credits WHERE customer = 'eve' AND kind = 'reversal'")
    small.in_credits("UPDATE balances SET points = 10 WHERE customer = 'eve'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"eve"}, Promise.ORDER_HAS_CREDIT: {"eve"}}


async def test_a_wrong_balance_is_found_by_the_auditor(small: SmallWorld) -> None:
    small.in_credits("UPDATE balances SET points = points + 1 WHERE customer = 'cy'")
    assert broken(small) == {Promise.BOOKS_AGREE: {"cy"}}


async def test_a_credit_whose_order_is_gone_breaks_what_the_customer_was_told(small: SmallWorld) -> None:
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


async def test_a_state_that_was_flipped_is_found(small: SmallWorld) -> None:
    small.in_orders("UPDATE orders SET state = 'PLACED' WHERE customer = 'eve'")
    assert broken(small) == {
        Promise.BOOKS_AGREE: {"eve"},
        Promise.ORDER_HAS_CREDIT: {"eve"},
        Promise.ORDER_HAS_SHIPMENT: {"eve"},
    }


async def test_an_order_that_awaits_its_payment_for_ever_is_pending(small: SmallWorld) -> None:
    small.in_orders("UPDATE orders SET state = 'AWAITING_PAYMENT', ended_at_ms = NULL WHERE customer = 'dan'")
    small.in_orders("UPDATE transactions SET state = 'PENDING' WHERE order_id = :it", it=small.order_id("dan"))
    assert broken(small) == {Promise.BOOKS_AGREE: {"dan"}, Promise.NOTHING_PENDING: {"dan"}}


async def test_a_shipment_that_is_missing_is_found(small: SmallWorld) -> None:
    order_id = small.order_id("fay")
    small.in_stock("DELETE FROM shipments WHERE order_id = :it", it=order_id)
    assert broken(small) == {Promise.ORDER_HAS_SHIPMENT: {"fay"}}


@pytest.mark.parametrize("state", ["SHORT", "RETURNED", "CALLED_OFF"])
async def test_an_order_that_stands_is_shipped(small: SmallWorld, state: str) -> None:
    small.in_stock(f"UPDATE shipments SET state = '{state}' WHERE order_id = :it", it=small.order_id("ada"))
    assert broken(small) == {Promise.ORDER_HAS_SHIPMENT: {"ada"}}


async def test_a_shipment_takes_from_stock_what_the_order_wants(small: SmallWorld) -> None:
    small.in_stock("UPDATE shipment_lines SET quantity = 2 WHERE order_id = :it", it=small.order_id("ada"))
    assert broken(small) == {Promise.ORDER_HAS_SHIPMENT: {"ada"}}


async def test_a_message_that_is_gone_from_the_log_is_found_by_the_auditor(small: SmallWorld) -> None:
    path = next(path for path in small.files if path.parent.name == "commitlog")
    last = small.read().stores["broker-a"].records[-1]
    small.files[path] = small.files[path][: last.commit_log_offset]
    found = broken(small)
    assert Promise.ORDER_HAS_CREDIT not in found
    assert Promise.BOOKS_AGREE in found or last.topic == topics.OP_HALF_TOPIC.encode()


async def test_a_message_that_nobody_acknowledged_is_pending(small: SmallWorld) -> None:
    path = next(path for path in small.files if path.name == "consumerOffset.json")
    small.files[path] = b"{}"
    found = broken(small)
    assert found.keys() == {Promise.NOTHING_PENDING}
    assert {"ada", "bob", "cy", "eve", "fay"} == found[Promise.NOTHING_PENDING]


def appended(small: SmallWorld, topic: str, order_id: str) -> None:
    """Adds a record to the log that waits for a person."""
    path = next(path for path in small.files if path.parent.name == "commitlog")
    last = small.read().stores["broker-a"].records[-1]
    end = last.commit_log_offset + last.size
    named = {properties.KEYS: order_id, properties.UNIQUE_KEY: f"U-{order_id}", properties.REAL_TOPIC: "orders"}
    record = encode_record(
        topic=topic.encode(), queue_id=0, queue_offset=0, commit_log_offset=end, flag=0, sys_flag=0, born_timestamp=1,
        born_host=host_bytes("127.0.0.1", 1), store_timestamp=small.now_ms, store_host=host_bytes("127.0.0.1", 1),
        reconsume_times=0, prepared_transaction_offset=0, body=b"{}", properties=properties.encode(named),
    )  # fmt: skip
    data = small.files[path]
    small.files[path] = data[:end] + record + data[end + len(record) :]


async def test_a_dead_letter_that_no_list_names_is_found(small: SmallWorld) -> None:
    appended(small, "%DLQ%credit_service", small.order_id("ada"))
    assert broken(small) == {Promise.LISTED_FOR_A_PERSON: {"ada"}}


async def test_judges_that_disagree_are_a_violation(small: SmallWorld) -> None:
    by_audit, liveness = reports(small)
    order_id = small.order_id("ada")
    other = replace(liveness, verdicts={**liveness.verdicts, order_id: OrderVerdict.BROKEN})
    (violation,) = disagreements(by_audit, other)
    assert (violation.promise, violation.keys) == (Promise.JUDGES_AGREE, (order_id,))
    assert violation.text.startswith("The judges disagree: ")
    unknown = replace(by_audit, verdicts={"x": OrderVerdict.BROKEN}, findings={"x": Finding.CREDIT_WITHOUT_ORDER})
    assert [one.keys for one in disagreements(unknown, liveness)] == [("x",)]


async def test_a_half_message_without_decision_is_pending(small: SmallWorld) -> None:
    books = small.read()
    rows = audited(books.tables, books.logs, small.cut_off, ROUTE)
    assert {row["finding"] for row in rows} <= {Finding.MATCHED, Finding.REVERSED, Finding.ENDED}
    assert judge_end(books, BrokerLists(), small.told, GROUPS).violations == ()
