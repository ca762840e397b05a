"""An exploration finds well-known bugs in users' programs, and reports nothing for programs without bugs."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeStatus,
    EventLoopThread,
    LocalTransactionState,
    Message,
    MessageExt,
    PushConsumer,
    TransactionProducer,
)
from rocketmq_broker.testing.exploring import ExploredWorld, WorldFailed, explore
from tests.component.testing.exploring.small_bank import COMMIT, ROLLBACK, Bank, order

ENOUGH = 50

BUGS: dict[str, Callable[[Bank], None]] = {
    "a listener answers check-backs from memory": lambda it: it.world.run(shop=it.forgetful_shop, bank=it.bank),
    "a consumer is not idempotent": lambda it: it.world.run(shop=it.shop, bank=it.repeating_bank),
    "a consumer acknowledges before it has written": lambda it: it.world.run(shop=it.shop, bank=it.hasty_bank),
    "a producer sends before its database has the order": lambda it: it.world.run(shop=it.hasty_shop, bank=it.bank),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_of_a_user_is_found_and_shrunk_to_a_plan_that_fails_again(bug: str, tmp_path: Path) -> None:
    def explored(world: ExploredWorld) -> None:
        bank = Bank(world)
        BUGS[bug](bank)
        bank.judge()

    with pytest.raises(WorldFailed) as found:
        explore(seeds=ENOUGH, output=tmp_path, shrinking_s=600, shrinking_tries=60)(explored)()
    text = str(found.value)
    plan = re.search(r"^Repeat: @explore\(plan='(.*)'\)$", text, re.MULTILINE)
    page = re.search(r"^Page: (.*)$", text, re.MULTILINE)
    assert "of seed" in text
    assert "The last events:" in text
    assert page is not None
    assert "<html" in Path(page[1]).read_text()
    assert plan is not None
    assert plan[1].count('"at_s"') <= 6
    with pytest.raises(WorldFailed):
        explore(plan=plan[1], output=tmp_path, shrinking_tries=1)(explored)()


@explore(seeds=200)
def test_programs_without_these_bugs_hold_in_each_world(world: ExploredWorld) -> None:
    bank = Bank(world)
    world.run(shop=bank.shop, bank=bank.bank)
    bank.judge()


@explore(seeds=100)
def test_synchronous_programs_with_a_database_in_sql_hold_in_each_world(
    world: ExploredWorld, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("shop") / "shop.sqlite3"
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE orders (key TEXT PRIMARY KEY)")
        made.execute("CREATE TABLE credits (key TEXT PRIMARY KEY)")

    class Listener:
        def __init__(self, database: sqlite3.Connection) -> None:
            self.database = database

        def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
            with self.database:
                self.database.execute("INSERT OR IGNORE INTO orders VALUES (?)", (message.keys[0],))
                world.crash_point()
                world.may_fail(sqlite3.OperationalError)
            world.may_fail(sqlite3.OperationalError)
            return COMMIT

        def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            found = self.database.execute("SELECT 1 FROM orders WHERE key = ?", (message.keys[0],)).fetchone()
            return COMMIT if found else ROLLBACK

    def shop() -> None:
        database = world.closed_at_death(sqlite3.connect(file, check_same_thread=False))
        with EventLoopThread() as loop, loop.running(TransactionProducer("shop", Listener(database))) as producer:
            for number in world.requests:
                loop.run(producer.send_message_in_transaction(order(number)))

    def bank() -> None:
        database = world.closed_at_death(sqlite3.connect(file, check_same_thread=False))
        consumer, loop = PushConsumer("bank"), EventLoopThread()

        @consumer.consumes("orders")
        def credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
            with database:
                for message in messages:
                    database.execute("INSERT OR IGNORE INTO credits VALUES (?)", (message.keys[0],))
                world.crash_point()
            return ConsumeStatus.CONSUME_SUCCESS

        loop.start()
        loop.run(consumer.start())

    world.run(shop=shop, bank=bank)
    with sqlite3.connect(file) as books:
        stored, credited = (Counter(books.execute(f"SELECT key FROM {table}")) for table in ("orders", "credits"))
    assert credited == stored
