"""Runs the recipe in simulated worlds: programs die, databases fail or lose a response, tasks are lost or executed twice."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session, select

from rocketmq_broker.client import LocalTransactionState, Message
from rocketmq_broker.testing.exploring import ExploredWorld, WorldFailed, explore
from tutorials.recipes.order_credit import credits, orders

Patch = pytest.MonkeyPatch


def each_order_has_one_credit(world: ExploredWorld, monkeypatch: Patch) -> None:
    order_database = world.database("order-database", orders.Base.metadata.create_all)
    credit_database = world.database("credit-database", credits.Base.metadata.create_all)
    give_credits = world.remote(credits.give_credits.run)
    monkeypatch.setenv("DATABASE_URL", "order-database")
    monkeypatch.setattr(orders, "create_engine", lambda url: order_database.engine)
    monkeypatch.setattr(credits, "engine", lambda: credit_database.engine)
    monkeypatch.setattr(credits.give_credits, "delay", give_credits.send)

    def shop() -> None:
        customer = orders.create_app().test_client()
        for number in world.requests:
            customer.put(f"/orders/order-{number}", json={"customer": "ada", "total_cents": 500})

    world.run(shop=shop, bank=credits.consume, worker=give_credits.serve, until=lambda: not credits.inbox.is_due())
    with Session(order_database.engine) as shops, Session(credit_database.engine) as banks:
        placed = Counter(order.order_id for order in shops.exec(select(orders.Order)))
        assert Counter(credit.order_id for credit in banks.exec(select(credits.Credit))) == placed


@explore(seeds=25)
def test_each_order_has_one_credit(world: ExploredWorld, monkeypatch: Patch) -> None:
    each_order_has_one_credit(world, monkeypatch)


def test_a_seed_gives_the_same_world_again() -> None:
    def digest() -> str:
        world = ExploredWorld(7)
        with pytest.MonkeyPatch.context() as patch:
            each_order_has_one_credit(world, patch)
        world.end()
        return world.history.digest

    assert digest() == digest()


def without_barrier(patch: Patch) -> None:
    def store_only_the_order(self: orders.OrderListener, message: Message, order: dict[str, Any]) -> LocalTransactionState:
        with Session(self._engine) as session, session.begin():
            session.add(orders.Order(**order))
        return LocalTransactionState.COMMIT_MESSAGE

    patch.setattr(orders.OrderListener, "execute_local_transaction", store_only_the_order)


def without_unique_key(patch: Patch) -> None:
    drain = credits.inbox.drain
    patch.setattr(credits.inbox, "drain", lambda work, once: drain(work))


@pytest.mark.parametrize("take_out", [without_barrier, without_unique_key])
def test_a_missing_part_is_found(take_out: Callable[[Patch], None], tmp_path: Path, monkeypatch: Patch) -> None:
    take_out(monkeypatch)
    explored = explore(seeds=50, output=tmp_path, shrinking_tries=40)(each_order_has_one_credit)
    with pytest.raises(WorldFailed, match="Counter"):
        explored(monkeypatch=monkeypatch)
