"""Runs the recipe in simulated worlds: programs die, databases fail or lose a response, tasks are lost or executed twice."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session, select

from rocketmq_broker.databases import LocalOutcome
from rocketmq_broker.databases.sqlalchemy import TRANSACTIONS
from rocketmq_broker.testing.exploring import ExploredWorld, WorldFailed, explore
from tutorials.recipes.pay_later import coupons, shop

Patch = pytest.MonkeyPatch
IS_PAID = shop.Order.transaction_id == TRANSACTIONS.c.transaction_id, TRANSACTIONS.c.state == LocalOutcome.COMMITTED.value


def each_paid_order_has_one_coupon(world: ExploredWorld, monkeypatch: Patch) -> None:
    orders, given = (world.database(name, shop.Base.metadata.create_all) for name in ("orders", "given"))
    give_coupon, payments = world.remote(coupons.give_coupon.run), dict[str, int]()
    monkeypatch.setenv("DATABASE_URL", "orders")
    monkeypatch.setattr(shop, "create_engine", lambda url: orders.engine)
    monkeypatch.setattr(shop, "PAYABLE_S", 7)  # until between the first and the second check-back
    monkeypatch.setattr(coupons, "engine", lambda: given.engine)
    monkeypatch.setattr(coupons.give_coupon, "delay", lambda **order: SimpleNamespace(get=lambda timeout: give_coupon(**order)))

    def worker() -> None:
        customer = shop.create_app().test_client()
        for number in world.requests:
            customer.put(f"/orders/order-{number}", json={"customer": "ada"})
            time.sleep(2 * number)
            payments[f"order-{number}"] = customer.put(f"/orders/order-{number}/payment").status_code

    world.run(worker_1=worker, worker_2=worker, consumer=coupons.consume, celery=give_coupon.serve)
    with Session(orders.engine) as shops, Session(given.engine) as services:
        paid = Counter(shops.exec(select(shop.Order.order_id).where(*IS_PAID)))
        assert Counter(services.exec(select(coupons.Coupon.order_id))) == paid
    assert {order for order, status in payments.items() if status == 200} <= paid.keys()
    assert 200 in payments.values() or world.fired, "no order can be paid"


@explore(seeds=25)
def test_each_paid_order_has_one_coupon(world: ExploredWorld, monkeypatch: Patch) -> None:
    each_paid_order_has_one_coupon(world, monkeypatch)


def without_barrier(patch: Patch) -> None:
    patch.setattr(shop, "barrier", lambda session, message, state: session.begin())


def without_unique_key(patch: Patch) -> None:
    create_all = shop.Base.metadata.create_all

    def create_without_key(engine: Engine) -> None:
        create_all(engine)
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE coupon"))
            connection.execute(text("CREATE TABLE coupon (order_id TEXT, customer TEXT)"))

    @contextmanager
    def each_time(session: Session, order_id: str, consumer: str) -> Iterator[bool]:
        with session.begin():
            yield True

    patch.setattr(shop.Base.metadata, "create_all", create_without_key)
    patch.setattr(coupons, "once", each_time)


@pytest.mark.parametrize(("take_out", "found"), [(without_barrier, "no order can be paid"), (without_unique_key, "Counter")])
def test_a_missing_part_is_found(take_out: Callable[[Patch], None], found: str, tmp_path: Path, monkeypatch: Patch) -> None:
    take_out(monkeypatch)
    explored = explore(seeds=50, output=tmp_path, shrinking_tries=40)(each_paid_order_has_one_coupon)
    with pytest.raises(WorldFailed, match=found):
        explored(monkeypatch=monkeypatch)
