"""A simulated shop processes its orders despite any crash or hang. The same seed gives the same history."""

import asyncio
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from lab.simulation.action_kinds import ActionKind
from lab.simulation.databases.rules import OrderRule
from lab.simulation.services.celery_model import OrderFault, TaskFault
from order_service.domain.order import Item
from tests.lab.simulation.small_shop import SmallShop, Story, play

PlayStory = Callable[..., SmallShop]


@pytest.fixture
def played() -> Iterator[PlayStory]:
    worlds: list[SmallShop] = []

    def remembered(story: Story, **how: object) -> SmallShop:
        worlds.append(play(story, **how))  # type: ignore[arg-type]
        return worlds[-1]

    yield remembered
    for world in worlds:
        world.shop.close()


def five_orders(shop: SmallShop) -> None:
    for number in range(5):
        shop.place(number, 1.0 + number)


def each_once(shop: SmallShop, count: int) -> bool:
    orders = sorted(shop.order_states())
    return len(orders) == count and shop.credits() == [(order, "credit") for order in orders]


def test_each_order_is_credited_and_shipped(played: PlayStory) -> None:
    shop = played(five_orders)
    assert each_once(shop, 5)
    assert shop.shipments() == dict.fromkeys(shop.order_states(), "SHIPPED")
    assert [shop.statuses(number) for number in range(5)] == [[201]] * 5
    assert shop.world.errors == []


def test_an_order_to_be_paid_later_is_credited_after_its_payment(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.place(1, 1.0, later=True)
        shop.place(2, 1.0, later=True)
        shop.act(ActionKind.PAY, 1, 20.0)

    shop = played(story, for_s=200.0)
    paid, forgotten = shop.customers.order_ids[1], shop.customers.order_ids[2]
    assert shop.order_states() == {paid: "PAID", forgotten: "EXPIRED"}
    assert shop.credits() == [(paid, "credit")]
    assert shop.shipments() == {paid: "SHIPPED"}


def test_a_cancelled_order_is_reversed_and_returned(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.place(1, 1.0)
        shop.act(ActionKind.CANCEL, 1, 10.0)

    shop = played(story)
    order = shop.customers.order_ids[1]
    assert shop.order_states() == {order: "CANCELLED"}
    assert shop.credits() == [(order, "credit"), (order, "reversal")]
    assert shop.shipments() == {order: "RETURNED"}


def test_the_same_key_orders_once(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.place(1, 1.0)
        shop.act(ActionKind.PLACE_AGAIN, 1, 5.0)

    shop = played(story)
    assert each_once(shop, 1)
    assert [asked.answer.is_replay for asked in shop.asked] == [False, True]


def test_an_order_above_the_limit_is_refused(played: PlayStory) -> None:
    shop = played(lambda shop: shop.place(1, 1.0, items=(Item("gold", 1, 5_000_000),)))
    assert shop.statuses(1) == [409]
    assert shop.order_states() == {}
    assert shop.credits() == []


def test_a_credit_service_that_is_killed_in_a_batch_credits_each_order_once(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        for number in range(10):
            shop.place(number, 1.0)
        for tenths in range(10, 20):
            shop.at(tenths / 10, shop.program("credits-1").kill)

    shop = played(story, for_s=120.0)
    assert each_once(shop, 10)
    deaths = [happening for happening in shop.world.history.happenings if happening.kind == "death"]
    assert {death.process for death in deaths} == {"credits-1"}


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("nth", range(1, 12))
def test_a_worker_that_dies_at_a_step_in_the_database_credits_each_order_once(
    played: PlayStory, nth: int, is_before: bool
) -> None:
    def story(shop: SmallShop) -> None:
        die = shop.program("worker-1").kill
        shop.shop.databases["credits-database"].faults.die_at("worker-1", nth, die, is_before=is_before)
        five_orders(shop)

    shop = played(story, for_s=200.0)
    assert each_once(shop, 5)
    assert ("credits-database", "kill") in shop.fired


def test_a_step_that_hangs_beyond_the_end_of_its_fault_goes_on(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        die, faults = shop.program("worker-1").kill, shop.shop.databases["credits-database"].faults
        faults.hang(30.0)
        faults.die_at("worker-1", 1, die, is_before=False, is_over=lambda: True)
        five_orders(shop)

    shop = played(story, for_s=200.0)
    assert each_once(shop, 5)
    assert ("credits-database", "hang") in shop.fired
    assert ("credits-database", "kill") not in shop.fired


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("nth", range(1, 16))
def test_check_back_decides_after_an_order_service_has_died_in_the_database(played: PlayStory, nth: int, is_before: bool) -> None:
    def story(shop: SmallShop) -> None:
        die = shop.program("orders-1").kill
        shop.shop.databases["orders-database"].faults.die_at("orders-1", nth, die, is_before=is_before)
        shop.place(1, 1.0, key=False)
        shop.place(2, 30.0)

    shop = played(story, for_s=120.0)
    assert each_once(shop, len(shop.order_states()))
    assert len(shop.order_states()) in (1, 2)
    assert ("orders-database", "kill") in shop.fired


def test_a_commit_of_unknown_outcome_is_answered_202_and_credited(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.place(1, 1.0)
        # The first commit writes the epoch, the second one the order.
        shop.shop.databases["orders-database"].faults.lose_answer(nth=2)

    shop = played(story)
    assert shop.statuses(1) == [202, 201]
    assert each_once(shop, 1)


def test_a_commit_that_is_lost_is_answered_202_and_rolled_back(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.place(1, 1.0, key=False)
        shop.shop.databases["orders-database"].faults.lose_commit(nth=2)

    shop = played(story)
    assert shop.statuses(1) == [202]
    assert shop.order_states() == {}
    assert shop.credits() == []
    assert shop.rows("orders", "SELECT state FROM transactions") == [("ROLLED_BACK",)]


@pytest.mark.parametrize("nth", range(1, 12))
def test_a_statement_that_hangs_costs_time_only(played: PlayStory, nth: int) -> None:
    def story(shop: SmallShop) -> None:
        faults = shop.shop.databases["credits-database"].faults
        shop.at(1.0 + nth / 100, faults.hang_statements, 1, 20.0)
        five_orders(shop)

    shop = played(story)
    assert each_once(shop, 5)
    assert ("credits-database", "hang") in shop.fired
    assert inbox(shop) == []


@pytest.mark.parametrize("place", ["orders", "credits", "inventory"])
def test_no_order_is_lost_while_a_database_refuses_hangs_or_is_locked(played: PlayStory, place: str) -> None:
    def story(shop: SmallShop) -> None:
        database = shop.shop.databases[f"{place}-database"]
        shop.at(2.0, database.faults.refuse, 10.0, 0.5)
        shop.at(15.0, database.faults.hang, 12.0)
        shop.at(30.0, database.lock)
        shop.at(45.0, database.unlock)
        for number in range(10):
            shop.place(number, 1.0 + 5 * number)

    shop = played(story, for_s=200.0)
    assert each_once(shop, 10)
    assert {word for where, word in shop.fired if where == f"{place}-database"} >= {"refuse", "hang", "locked"}
    assert shop.shipments() == dict.fromkeys(shop.order_states(), "SHIPPED")


def inbox(shop: SmallShop) -> list[tuple[str, str]]:
    """Returns the consumer and status of each message in the credit database's inbox."""
    return sorted(shop.rows("credits", "SELECT consumer, status FROM rocketmq_inbox"))


def tasks(shop: SmallShop) -> list[str]:
    return [happening.text for happening in shop.world.history.happenings if happening.kind == "task"]


@pytest.mark.parametrize("fault", TaskFault)
def test_a_task_that_is_lost_doubled_or_late_credits_its_orders_once(played: PlayStory, fault: TaskFault) -> None:
    def story(shop: SmallShop) -> None:
        shop.shop.redis.plan(fault, nth=2, delay_s=40.0 if fault is TaskFault.IS_LATE else 0.01)
        five_orders(shop)

    shop = played(story, for_s=60.0)
    assert each_once(shop, 5)
    assert ("redis", fault.value) in shop.fired
    assert inbox(shop) == []


def twelve_at_once(shop: SmallShop) -> None:
    for number in range(12):
        shop.place(number, 1.0)


def test_orders_that_come_while_a_worker_works_share_its_task(played: PlayStory) -> None:
    shop = played(twelve_at_once)
    assert each_once(shop, 12)
    assert len(tasks(shop)) < 12


each_failing = pytest.mark.parametrize("effect", [OrderFault.RAISES, OrderFault.DIES])


@pytest.mark.parametrize("is_written", [True, False])
@each_failing
def test_an_order_that_cannot_be_credited_waits_alone_and_passes_when_it_can(
    played: PlayStory, effect: OrderFault, is_written: bool
) -> None:
    def story(shop: SmallShop) -> None:
        shop.shop.redis.fail_order(5, 100.0, effect, is_written=is_written)
        twelve_at_once(shop)
        shop.at(90.0, lambda: credited.append(len(shop.credits())))

    credited: list[int] = []
    shop = played(story, for_s=300.0)
    assert credited == [11]
    assert each_once(shop, 12)
    assert ("redis", "fail_order") in shop.fired
    assert inbox(shop) == []


@pytest.mark.parametrize("is_written", [True, False])
def test_a_process_of_the_pool_that_hangs_is_killed_at_its_time_limit(played: PlayStory, is_written: bool) -> None:
    def story(shop: SmallShop) -> None:
        shop.shop.redis.fail_order(2, 30.0, OrderFault.HANGS, is_written=is_written)
        five_orders(shop)

    shop = played(story, for_s=60.0)
    (death,) = [happening for happening in shop.world.history.happenings if happening.kind == "death"]
    assert (death.process, 32 < death.at_ns / 1e9 < 33) == ("worker-1", True)
    assert each_once(shop, 5)
    assert inbox(shop) == []


def poisoned(shop: SmallShop, effect: OrderFault) -> None:
    """Blocks the credit of the second order for three minutes, and places further orders for two minutes."""
    shop.shop.redis.fail_order(2, 180.0, effect)
    for number in range(30):
        shop.place(number, 1.0 + 4 * number)


def test_an_order_whose_credit_never_ends_does_not_keep_the_others_from_theirs(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.shop.redis.fail_order(2, math.inf, OrderFault.HANGS)
        for number in range(10):
            shop.place(number, 1.0 + 4 * number)

    shop = played(story, for_s=300.0, cancels_refused=False)
    (hanging,) = shop.shop.redis.failing_orders
    assert [order for order, _ in shop.credits()] == sorted(order for order in shop.order_states() if order != hanging)


@each_failing
def test_an_order_that_cannot_be_credited_for_long_is_cancelled_and_the_others_pass(
    played: PlayStory, effect: OrderFault
) -> None:
    shop = played(lambda shop: poisoned(shop, effect), for_s=300.0, max_tries=2)
    (refused,) = shop.shop.redis.failing_orders
    states = shop.order_states()
    assert states.pop(refused) == "CANCELLED"
    assert set(states.values()) == {"PLACED"}
    assert [entry for entry in shop.credits() if entry[0] != refused] == [(order, "credit") for order in sorted(states)]
    assert shop.rows("credits", f"SELECT kind, points FROM credits WHERE order_id = '{refused}' ORDER BY kind") == [
        ("credit", 0), ("reversal", 0),
    ]  # fmt: skip
    assert inbox(shop) == []


@each_failing
def test_an_order_that_cannot_be_credited_for_long_is_parked_where_nothing_is_cancelled(
    played: PlayStory, effect: OrderFault
) -> None:
    shop = played(lambda shop: poisoned(shop, effect), for_s=300.0, max_tries=2, cancels_refused=False)
    (parked,) = shop.shop.redis.failing_orders
    assert shop.credits() == [(order, "credit") for order in sorted(shop.order_states()) if order != parked]
    assert inbox(shop) == [("credit_service", "PARKED")]


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("nth", range(1, 9))
def test_a_process_of_the_pool_that_dies_in_a_drain_credits_each_order_once(played: PlayStory, nth: int, is_before: bool) -> None:
    def story(shop: SmallShop) -> None:
        shop.shop.databases["credits-database"].faults.die_at("worker-1", nth, None, is_before=is_before)
        twelve_at_once(shop)

    shop = played(story, for_s=60.0)
    assert each_once(shop, 12)
    assert ("credits-database", "kill_child") in shop.fired
    assert "worker-1 tries each message alone" in tasks(shop)
    assert inbox(shop) == []


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("nth", range(1, 7))
def test_a_worker_that_dies_in_a_drain_of_many_credits_each_order_once(played: PlayStory, nth: int, is_before: bool) -> None:
    def story(shop: SmallShop) -> None:
        die = shop.program("worker-1").kill
        shop.shop.databases["credits-database"].faults.die_at("worker-1", nth, die, is_before=is_before)
        twelve_at_once(shop)

    shop = played(story, for_s=200.0)
    assert each_once(shop, 12)
    assert ("credits-database", "kill") in shop.fired


def test_an_order_that_a_rule_refuses_is_cancelled(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        rules = shop.shop.databases["credits-database"].faults.rules
        rules.append(OrderRule(3, math.inf, takes_nothing=True))
        shop.at(40.0, rules.clear)
        for number in range(10):
            shop.place(number, 1.0 + 2 * number)

    shop = played(story, max_tries=2)
    assert sorted(shop.order_states().values()) == ["CANCELLED"] + ["PLACED"] * 9
    (cancelled,) = [order for order, state in shop.order_states().items() if state == "CANCELLED"]
    entries = shop.rows("credits", f"SELECT kind, points FROM credits WHERE order_id = '{cancelled}'")
    assert sorted(entries) == [("credit", 0), ("reversal", 0)]
    assert inbox(shop) == []


def test_an_order_that_a_rule_refuses_whatever_its_amount_is_parked(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.shop.databases["credits-database"].faults.rules.append(OrderRule(3, math.inf))
        for number in range(10):
            shop.place(number, 1.0 + 2 * number)

    shop = played(story, max_tries=2)
    assert set(shop.order_states().values()) == {"PLACED"}
    assert len(shop.credits()) == 9
    assert inbox(shop) == [("credit_service", "PARKED")]


def test_an_outage_of_the_ledger_parks_and_refuses_nothing(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        five_orders(shop)
        shop.at(3.5, shop.shop.databases["credits-database"].faults.refuse, 100.0)

    shop = played(story, for_s=200.0, max_tries=1)
    assert ("credits-database", "refuse") in shop.fired
    assert each_once(shop, 5)


def test_a_refusal_waits_in_the_outbox_until_the_broker_takes_it(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.shop.redis.fail_order(2, 30.0)
        shop.place(1, 1.0)
        shop.place(2, 2.0)
        shop.place(3, 2.5)
        shop.at(2.9, shop.program("broker-a").kill, 20.0)
        shop.at(20.0, lambda: waiting.extend(inbox(shop)))

    waiting: list[tuple[str, str]] = []
    shop = played(story, for_s=120.0, max_tries=1, worker_slots=1)
    assert sorted(shop.order_states().values()) == ["CANCELLED", "PLACED", "PLACED"]
    assert waiting == [("credit_service.refusals", "NEW")]
    assert inbox(shop) == []


def test_an_order_that_a_rule_of_the_order_database_refuses_is_placed_when_the_rule_is_gone(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        rules = shop.shop.databases["orders-database"].faults.rules
        rules.append(OrderRule(1, math.inf))
        shop.at(1.5, rules.clear)
        shop.place(1, 1.0)

    shop = played(story)
    assert shop.statuses(1) == [503, 201]
    assert each_once(shop, 1)


def test_locks_of_a_database_overlap(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        database = shop.shop.databases["credits-database"]
        shop.at(0.5, database.lock)
        shop.at(1.0, database.lock)
        shop.at(5.0, database.unlock)
        shop.at(20.0, database.unlock)
        five_orders(shop)

    shop = played(story)
    assert each_once(shop, 5)
    times_s = [it.at_ns / 1e9 for it in shop.world.history.happenings if it.text.startswith("credits-database: credits")]
    assert min(times_s) > 20


def test_a_redis_that_hangs_and_is_away_delays_credits_only(played: PlayStory) -> None:
    def story(shop: SmallShop) -> None:
        shop.at(2.5, shop.shop.redis.hang, 20.0)
        shop.at(26.0, shop.shop.redis.go_away, 10.0)
        for number in range(5):
            shop.place(number, 1.0 + 8 * number)
        for at_s in (22.0, 25.9, 35.9):
            shop.at(at_s, lambda: credited.append(len(shop.credits())))

    credited: list[int] = []
    shop = played(story, for_s=60.0)
    assert credited == [1, 4, 4]
    assert each_once(shop, 5)
    assert {word for where, word in shop.fired if where == "redis"} == {"hang", "away"}
    assert inbox(shop) == []


def test_an_old_copy_that_answers_check_backs_rolls_no_order_back(played: PlayStory) -> None:
    async def story(shop: SmallShop) -> None:
        shop.place(1, 1.0, later=True)
        shop.place(2, 30.0, later=True)
        shop.act(ActionKind.PAY, 1, 35.0)
        shop.act(ActionKind.PAY, 2, 60.0)

        def switch() -> None:
            shop.shop.order_services["orders-1"].check_back_from(copy)

        await asyncio.sleep(20)
        copy = shop.shop.replica_of("orders-database")
        shop.at(11.0, switch)
        shop.at(50.0, lambda: shop.shop.order_services["orders-1"].check_back_from(None))

    shop = played(story, for_s=200.0)
    assert set(shop.order_states().values()) == {"PAID"}
    assert each_once(shop, 2)


def test_a_shortage_cancels_its_order(played: PlayStory) -> None:
    shop = played(lambda shop: shop.place(1, 1.0), stock={"tea": 0})
    order = shop.customers.order_ids[1]
    assert shop.order_states() == {order: "CANCELLED"}
    assert shop.credits() == [(order, "credit"), (order, "reversal")]


def busy(shop: SmallShop) -> None:
    five_orders(shop)
    shop.at(2.2, shop.program("credits-1").kill)
    shop.at(3.2, shop.program("orders-1").kill)
    shop.act(ActionKind.CANCEL, 2, 20.0)


def test_a_seed_makes_the_same_history_again(played: PlayStory) -> None:
    assert played(busy, seed=5).world.history.digest == played(busy, seed=5).world.history.digest


def test_another_seed_makes_another_history(played: PlayStory) -> None:
    assert played(busy, seed=5).world.history.digest != played(busy, seed=6).world.history.digest


def test_a_seed_makes_the_same_history_in_other_interpreters(played: PlayStory) -> None:
    code = "from tests.lab.simulation.test_shop import busy, play; print(play(busy, seed=5).world.history.digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "1", "random")
    }
    assert digests == {played(busy, seed=5).world.history.digest}
