"""Tests of explored worlds: the features available to a test, and the report of an exploration."""

import asyncio
import gc
import os
import random
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeStatus,
    EventLoopThread,
    LocalTransaction,
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TransactionProducer,
)
from rocketmq_broker.testing.exploring import (
    ExploredWorld,
    FoundBroken,
    NeverSettled,
    ProgramFailed,
    PromisesBroken,
    RuleBroken,
    WorldFailed,
    explore,
)
from tests.component.testing.exploring.small_bank import COMMIT, ROLLBACK, Bank, order

CHECKOUT = Path(__file__).parents[4]
ONE_ORDER = (
    '{"seed": 1, "ends_s": 4, "shape": {}, "events": '
    '[{"at_s": 3, "what": "request", "where": "customer", "parameters": {"number": 1}}]}'
)


def with_fault(fault: str) -> str:
    """Returns a plan with one order, and with a fault that begins just before the order."""
    return ONE_ORDER.replace('"events": [', f'"events": [{fault}, ')


async def serves_nobody() -> None:
    """Does nothing."""


def failure_of(test: object, folder: Path, plan: str = ONE_ORDER) -> WorldFailed:
    """Explores a test that fails in the plan's world, and returns the failure."""
    with pytest.raises(WorldFailed) as found:
        explore(plan=plan, output=folder, shrinking_tries=1)(test)()  # type: ignore[arg-type]
    return found.value


@explore(seeds=2)
def test_pytest_gives_fixtures_to_the_other_parameters(tmp_path: Path, world: ExploredWorld) -> None:
    world.run(shop=serves_nobody)
    assert tmp_path.is_dir()


class TestsOfAClass:
    @explore(seeds=2)
    def test_a_method_is_explored_as_a_function_is(self, world: ExploredWorld) -> None:
        world.run(shop=serves_nobody)
        assert isinstance(self, TestsOfAClass)


@explore(seeds=3)
def test_each_request_comes_to_one_program_once(world: ExploredWorld) -> None:
    served: list[int] = []

    async def one() -> None:
        async for number in world.requests:
            served.append(number)

    def other() -> None:
        for number in world.requests:
            served.append(number)

    world.run(one=one, other=other, requests=20)
    assert len(served) == len(set(served))
    assert set(served) <= set(range(1, 21))
    assert len(served) >= 15


@explore(plan=ONE_ORDER)
def test_a_program_that_sleeps_waits_in_the_worlds_time(world: ExploredWorld) -> None:
    seen: list[float] = []

    def shop() -> None:
        begun_s = time.time()
        time.sleep(600)
        seen.append(time.time() - begun_s)

    world.run(shop=shop, until=lambda: seen)
    assert 600 <= seen[0] < 601


def names_and_numbers(seed: int) -> tuple[list[object], str]:
    """Returns the random values and the time that a program gets in a world with this seed, and the digest of the world."""
    world, seen = ExploredWorld(seed), []

    async def shop() -> None:
        seen.extend([uuid.uuid4(), random.random(), time.time_ns()])
        async with Producer("shop") as producer:
            await producer.create_topic("orders")

    world.run(shop=shop)
    world.end()
    return seen, world.history.digest


def test_the_same_seed_gives_programs_the_same_chance_and_the_same_world() -> None:
    random.seed(5)
    expected = random.Random(5).random()
    assert names_and_numbers(3) == names_and_numbers(3)
    assert names_and_numbers(3) != names_and_numbers(4)
    assert random.random() == expected


def test_a_failure_tells_seed_plan_story_page_and_how_to_play_it_again(tmp_path: Path) -> None:
    def no_order_is_credited(world: ExploredWorld) -> None:
        bank = Bank(world)
        world.run(shop=bank.shop, bank=bank.bank)
        assert not bank.credits, "order-1 is credited"

    text = str(
        failure_of(no_order_is_credited, tmp_path, with_fault('{"at_s": 2, "what": "process.kill", "where": "bank", "for_s": 1}'))
    )
    assert text.startswith("no_order_is_credited fails in the world of seed 1: AssertionError: order-1 is credited")
    assert re.search(r"^  2 s: process.kill bank for 1 s$", text, re.MULTILINE)
    assert re.search(r"shop -> broker +half message to orders  \[order-1\]", text)
    assert re.search(r"broker -> bank +a message for its consumer  \[order-1\]", text)
    assert f"Page: {tmp_path}/no_order_is_credited-1.html" in text
    assert """Repeat: @explore(plan='{"seed":1,"ends_s":4.0,"shape":{},"events":[{"at_s":2.0,"what":"process.kill",""" in text
    assert "order-1 is credited" in (tmp_path / "no_order_is_credited-1.html").read_text()


def test_the_first_failing_seed_is_named_and_later_ones_are_not_played(tmp_path: Path) -> None:
    played: list[int] = []

    def fails_in_the_third_world(world: ExploredWorld) -> None:
        world.run(shop=serves_nobody)
        played.append(world.plan.seed)
        assert world.plan.seed != 9

    with pytest.raises(WorldFailed, match="world of seed 9"):
        explore(seeds=100, first_seed=7, output=tmp_path, shrinking_tries=1)(fails_in_the_third_world)()
    assert played[:3] == [7, 8, 9]
    assert set(played) == {7, 8, 9}


def test_an_error_in_a_program_is_told_with_its_cause(tmp_path: Path) -> None:
    def has_a_mistake(world: ExploredWorld) -> None:
        def shop() -> None:
            {}["order"]

        world.run(shop=shop)

    failed = failure_of(has_a_mistake, tmp_path)
    assert "ProgramFailed: the program shop ended with KeyError: 'order'" in str(failed)
    assert isinstance(failed.__cause__, ProgramFailed)
    assert isinstance(failed.__cause__.__cause__, KeyError)


def test_an_error_in_a_task_that_nobody_awaits_is_told(tmp_path: Path) -> None:
    def has_a_mistake(world: ExploredWorld) -> None:
        async def work() -> None:
            {}["order"]

        async def shop() -> None:
            asyncio.create_task(work())  # noqa: RUF006
            await asyncio.sleep(1)

        world.run(shop=shop)

    assert "unhandled error: KeyError: 'order'" in str(failure_of(has_a_mistake, tmp_path))


def test_a_listener_that_changes_its_mind_breaks_a_rule(tmp_path: Path) -> None:
    def listener_forgets(world: ExploredWorld) -> None:
        async def shop() -> None:
            listener = LocalTransaction(lambda message, arg: COMMIT, lambda message: ROLLBACK)
            async with TransactionProducer("shop", listener) as producer:
                async for number in world.requests:
                    await producer.send_message_in_transaction(order(number))

        world.run(shop=shop)

    plan = with_fault('{"at_s": 2.9, "what": "network.cut_half_way", "where": "shop>broker", "parameters": {"nth": 2}}')
    failed = failure_of(listener_forgets, tmp_path, plan)
    assert isinstance(failed.__cause__, RuleBroken)
    assert "shop sent COMMIT, then ROLLBACK" in str(failed)


def test_a_program_that_ends_each_time_is_named_with_its_error(tmp_path: Path) -> None:
    def cannot_open(world: ExploredWorld) -> None:
        def shop() -> None:
            raise FileNotFoundError("shop.toml")

        world.run(shop=shop)

    failed = failure_of(cannot_open, tmp_path)
    assert isinstance(failed.__cause__, NeverSettled)
    assert "shop" in str(failed)
    assert "FileNotFoundError: shop.toml" in str(failed)


def test_a_world_that_does_not_come_to_rest_says_what_it_waits_for(tmp_path: Path) -> None:
    def never_knows(world: ExploredWorld) -> None:
        async def shop() -> None:
            unknown = LocalTransaction(lambda message, arg: LocalTransactionState.UNKNOW, lambda message: COMMIT)
            async with TransactionProducer("shop", unknown) as producer:
                async for number in world.requests:
                    await producer.send_message_in_transaction(order(number))

        async def bank() -> None:
            consumer = PushConsumer("bank")

            @consumer.consumes("orders")
            async def hang(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
                await asyncio.Event().wait()
                return ConsumeStatus.CONSUME_SUCCESS

            await consumer.start()

        world.run(shop=shop, bank=bank)

    assert "the consumer group bank has not consumed 1 message of orders" in str(failure_of(never_knows, tmp_path))


def test_a_condition_of_the_test_is_waited_for_and_named(tmp_path: Path) -> None:
    def waits(world: ExploredWorld) -> None:
        world.run(shop=serves_nobody, until=lambda: False)

    assert "the condition `until` does not hold" in str(failure_of(waits, tmp_path))


def test_a_program_dies_at_its_crash_point_and_starts_again() -> None:
    starts: list[int] = []
    passed: list[int] = []

    def crashes(world: ExploredWorld) -> None:
        def shop() -> None:
            starts.append(1)
            for number in world.requests:
                try:
                    world.crash_point()
                finally:
                    passed.append(number)

        world.run(shop=shop)

    explore(plan=with_fault('{"at_s": 1, "what": "process.kill_at_point", "where": "shop", "parameters": {"nth": 1}}'))(crashes)()
    assert len(starts) == 2


def test_a_program_that_waits_when_its_world_ends_does_not_run_on_during_the_assertions() -> None:
    world, ended = ExploredWorld(1), list[str]()

    async def bank() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("bank")

    world.run(bank=bank)
    gc.collect()
    assert ended == []
    world.end()


def test_a_call_fails_where_the_test_allows_it_and_the_program_starts_again() -> None:
    starts: list[int] = []

    def fails(world: ExploredWorld) -> None:
        async def shop() -> None:
            starts.append(1)
            async for _ in world.requests:
                world.may_fail(ZeroDivisionError("the database refuses"))

        world.run(shop=shop)

    explore(plan=with_fault('{"at_s": 1, "what": "call.fails", "where": "shop", "parameters": {"nth": 1}}'))(fails)()
    assert len(starts) == 2


def test_a_passed_exploration_tells_what_fired_and_what_never_did(capsys: pytest.CaptureFixture[str]) -> None:
    def holds(world: ExploredWorld) -> None:
        world.run(shop=serves_nobody)

    explore(plan=with_fault('{"at_s": 2, "what": "process.kill", "where": "shop", "for_s": 1}'))(holds)()
    told = capsys.readouterr().out
    assert told.startswith("1 world passed, ")
    assert "fired: process.kill 1\n" in told
    assert "never fired: process.kill_at_frame, process.kill_at_disk," in told
    assert "process.kill_at_point" not in told


def test_a_synchronous_program_may_use_a_thread_for_its_event_loop() -> None:
    sent: list[str] = []

    def test(world: ExploredWorld) -> None:
        def shop() -> None:
            with EventLoopThread() as loop, loop.running(Producer("shop")) as producer:
                for number in world.requests:
                    sent.append(loop.run(producer.send(Message.of("orders", f"order {number}"))).message_id)

        world.run(shop=shop)

    explore(plan=ONE_ORDER)(test)()
    assert len(sent) == 1


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a new interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=CHECKOUT,
        env={**os.environ, **environment},
    )


def test_without_the_extra_the_import_says_what_to_install() -> None:
    done = run_python("import sys; sys.modules['greenlet'] = None; import rocketmq_broker.testing.exploring")
    assert "ImportError: the simulation needs the package greenlet: pip install 'rocketmq-broker[simulation]'" in done.stderr


def test_a_world_does_not_depend_on_the_seed_of_hashes() -> None:
    program = (
        "from rocketmq_broker.testing.exploring import ExploredWorld\n"
        "from tests.component.testing.exploring.small_bank import Bank\n"
        "for seed in range(1, 6):\n"
        "    world = ExploredWorld(seed)\n"
        "    bank = Bank(world)\n"
        "    world.run(shop=bank.shop, bank=bank.bank)\n"
        "    print(world.history.digest)\n"
        "    world.end()\n"
    )
    digests = [run_python(program, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")]
    assert len(digests[0].split()) == 5
    assert digests[0] == digests[1]


def test_a_test_reports_several_violations_at_once(tmp_path: Path) -> None:
    promise = "Each order has one credit."

    def finds_two(world: ExploredWorld) -> None:
        world.run(shop=serves_nobody)
        raise PromisesBroken([FoundBroken(promise, "order-1 has none", ("order-1",)), FoundBroken(promise, "order-2 has two")])

    text = str(failure_of(finds_two, tmp_path))
    assert text.startswith(f"finds_two fails in the world of seed 1: {promise} order-1 has none\n  {promise} order-2 has two\n")
    page = (tmp_path / "finds_two-1.html").read_text()
    assert "order-1 has none" in page
    assert "order-2 has two" in page
