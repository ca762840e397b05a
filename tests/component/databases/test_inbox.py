"""Tests of the inbox on SQLite and PostgreSQL: waiting, failing and parked messages, and the count of failures."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Engine, MetaData, String, Table, create_engine, insert, inspect, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker

from rocketmq_broker.databases.inbox import InboxMessage, InboxStatus, ParkMessage
from rocketmq_broker.databases.sqlalchemy import CONSUMED, INBOX, Inbox, add_inbox, add_tables, create_inbox, drop_inbox
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.message.properties import UNIQUE_KEY
from rocketmq_broker.world import World, in_world
from tests.passing_time import Clock

METADATA = MetaData()
CREDITS = Table("credits", METADATA, Column("id", String(64), primary_key=True), Column("order_id", String(36)))
add_tables(METADATA)
add_inbox(METADATA)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def inbox(engine: Engine, clock: Clock) -> Inbox[Session]:
    return Inbox(sessionmaker(engine), "credits", clock.world())


Deliver = Callable[..., list[MessageExt]]


@pytest.fixture
def deliver(delivered: MessageExt) -> Deliver:
    def messages(*orders: str, topic: str = "orders") -> list[MessageExt]:
        return [_as_delivered(delivered, topic, order) for order in orders]

    return messages


def _as_delivered(delivered: MessageExt, topic: str, order: str) -> MessageExt:
    values = {name: getattr(delivered, name) for name in MessageExt.__dataclass_fields__}
    values |= {"topic": topic, "body": order.encode(), "properties": {UNIQUE_KEY: f"id-of-{order}"}}
    return MessageExt(**{**values, "offset_message_id": f"offset-of-{order}"})


def credit(session: Session, messages: Sequence[InboxMessage]) -> None:
    session.execute(insert(CREDITS), [{"id": message.key, "order_id": message.text} for message in messages])


def refusing(*orders: str) -> Callable[[Session, Sequence[InboxMessage]], None]:
    """Returns a handler that raises an error for these orders."""

    def handle(session: Session, messages: Sequence[InboxMessage]) -> None:
        credit(session, messages)
        for message in messages:
            if message.text in orders:
                raise ValueError(f"{message.text} is refused\nDETAIL: of customer carol")

    return handle


def refuse_all(_session: Session, _messages: Sequence[InboxMessage]) -> None:
    raise RuntimeError("a database rule refuses every row")


def credited(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return sorted(connection.execute(select(CREDITS.c.order_id)).scalars())


def test_messages_wait_in_the_table_until_they_are_processed(inbox: Inbox[Session], engine: Engine, deliver: Deliver) -> None:
    inbox.put(deliver("1", "2", "3"))
    state = inbox.state()
    assert (state.new, state.waiting, state.oldest_received_at_ms) == (3, 3, Clock().now_ms)
    assert inbox.is_due()
    assert inbox.drain(credit).handled == 3
    assert credited(engine) == ["1", "2", "3"]
    assert inbox.state().waiting == 0
    assert not inbox.is_due()
    assert inbox.drain(credit).handled == 0


def test_a_handler_sees_the_message_as_it_was_delivered(inbox: Inbox[Session], delivered: MessageExt) -> None:
    strange = delivered.with_properties({UNIQUE_KEY: "x\0y", "who": "李雷 🍎 \0 \ud83c"})
    inbox.put([strange, delivered.with_properties({UNIQUE_KEY: "k" * 300})])
    seen: list[InboxMessage] = []
    inbox.drain(lambda _, messages: seen.extend(messages), once=True)
    assert len({message.key for message in seen}) == 2
    (same,) = [message for message in seen if message.message_id == strange.message_id]
    assert (same.topic, same.body, same.properties) == (strange.topic, strange.body, strange.properties)


def test_batches_are_as_large_as_asked_and_at_most_so_many(inbox: Inbox[Session], deliver: Deliver) -> None:
    sizes: list[int] = []
    inbox.put(deliver(*map(str, range(10))))
    assert inbox.drain(lambda _, messages: sizes.append(len(messages)), batch_size=4, max_batches=1).handled == 4
    assert inbox.drain(lambda _, messages: sizes.append(len(messages)), batch_size=4).handled == 6
    assert sizes == [4, 4, 2]


def test_a_message_that_is_delivered_twice_waits_once(inbox: Inbox[Session], engine: Engine, deliver: Deliver) -> None:
    inbox.put(deliver("1", "1"))
    inbox.put(deliver("1"))
    assert inbox.drain(credit).handled == 1
    assert credited(engine) == ["1"]


def test_two_messages_with_one_id_of_their_producer_are_both_processed(
    inbox: Inbox[Session], engine: Engine, deliver: Deliver
) -> None:
    first, second = deliver("1", "2")
    inbox.put([first, second.with_properties({UNIQUE_KEY: str(first.transaction_id)})])
    inbox.drain(credit)
    assert credited(engine) == ["1", "2"]


def test_a_redelivery_after_the_work_is_processed_again_unless_once_is_asked(inbox: Inbox[Session], deliver: Deliver) -> None:
    seen: list[str] = []
    for _ in range(3):
        inbox.put(deliver("1"))
        inbox.drain(lambda _, messages: seen.extend(message.text for message in messages))
    assert seen == ["1"] * 3
    for _ in range(3):
        inbox.put(deliver("2"))
        assert inbox.drain(lambda _, messages: seen.extend(message.text for message in messages), once=True).handled == 1
    assert seen[3:] == ["2"]


def test_once_holds_within_one_batch_and_not_for_work_that_failed(
    inbox: Inbox[Session], engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    first, again = deliver("1", "1 again")
    inbox.put([first, again.with_properties({UNIQUE_KEY: str(first.transaction_id)})])
    inbox.drain(refuse_all, once=True)
    clock.pass_s(1)
    inbox.drain(credit, once=True)
    assert len(credited(engine)) == 1
    with engine.connect() as connection:
        assert connection.execute(select(CONSUMED.c.message_key)).scalars().all() == ["id-of-1"]


def test_each_consumer_has_its_own_messages(inbox: Inbox[Session], engine: Engine, deliver: Deliver) -> None:
    other = Inbox(sessionmaker(engine), "stock")
    inbox.put(deliver("1"))
    other.put(deliver("1", "2"))
    assert (inbox.state().new, other.state().new) == (1, 2)
    inbox.drain(credit)
    assert credited(engine) == ["1"]


def test_one_that_fails_waits_alone_and_delays_nobody(
    inbox: Inbox[Session], engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    inbox.put(deliver(*map(str, range(10))))
    result = inbox.drain(refusing("3"))
    assert (result.handled, result.failed, result.parked) == (9, 1, 0)
    assert credited(engine) == [str(order) for order in range(10) if order != 3]
    state = inbox.state()
    assert (state.new, state.failed, state.last_error) == (0, 1, "ValueError: 3 is refused")
    assert not inbox.is_due()
    assert inbox.drain(credit).handled == 0
    clock.pass_s(1)
    assert inbox.is_due()
    assert inbox.drain(credit).handled == 1
    assert inbox.state().waiting == 0


def test_a_message_is_parked_after_failures_beside_others_that_pass(
    inbox: Inbox[Session], engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    inbox.put(deliver("bad"))
    delays = []
    for number in range(20):
        inbox.put(deliver(f"good {number}"))
        if inbox.drain(refusing("bad"), max_tries=3).parked:
            break
        with engine.connect() as connection:
            delays.append((connection.execute(select(INBOX.c.next_try_at_ms)).scalar_one() - clock.now_ms) // 1000)
        clock.pass_s(delays[-1])
    assert delays == [1, 2, 4]
    (parked,) = inbox.parked()
    assert (parked.text, parked.status, parked.attempts) == ("bad", InboxStatus.PARKED, 3)
    assert (inbox.state().parked, inbox.state().waiting) == (1, 0)
    clock.pass_s(10_000)
    assert inbox.drain(credit).handled == 0, "parked messages are not tried"
    assert inbox.retry(["another key"]) == 0
    assert inbox.retry([parked.key]) == 1
    assert inbox.drain(credit).handled == 1
    assert "bad" in credited(engine)


def test_a_rule_that_refuses_all_costs_time_and_no_attempts(
    inbox: Inbox[Session], engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    orders = [str(order) for order in range(40)]
    inbox.put(deliver(*orders))
    for _ in range(60):
        assert inbox.drain(refuse_all, max_tries=2).parked == 0
        clock.pass_s(1)
    assert inbox.state().waiting == 40
    assert inbox.drain(credit).handled == 40
    assert credited(engine) == sorted(orders)


def test_a_drain_ends_when_only_failures_come_and_its_process_pauses_for_a_second(
    inbox: Inbox[Session], clock: Clock, deliver: Deliver
) -> None:
    inbox.put(deliver(*map(str, range(100))))
    calls = Counter[int]()

    def count_and_refuse(session: Session, messages: Sequence[InboxMessage]) -> None:
        calls[len(messages)] += 1
        refuse_all(session, messages)

    assert inbox.drain(count_and_refuse).failed == 5
    for _ in range(9):
        inbox.drain(count_and_refuse)
    assert (calls, inbox.state().failed) == ({100: 1, 1: 5}, 5)
    assert inbox.drain(credit).handled == 0
    clock.pass_s(1)
    assert inbox.drain(credit).handled == 100


def test_several_bad_ones_do_not_keep_good_ones_from_passing(
    inbox: Inbox[Session], engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    bad = [f"bad {number}" for number in range(30)]
    inbox.put(deliver(*bad, *map(str, range(10))))
    for _ in range(12):
        inbox.drain(refusing(*bad))
        clock.pass_s(1)
    assert credited(engine) == sorted(map(str, range(10)))


def test_a_handler_parks_a_message_at_once(inbox: Inbox[Session], deliver: Deliver) -> None:
    def handle(session: Session, messages: Sequence[InboxMessage]) -> None:
        if any(message.text == "bad" for message in messages):
            raise ParkMessage("its amount differs from the ledger's")
        credit(session, messages)

    inbox.put(deliver("bad", "good"))
    assert (inbox.drain(handle).parked, inbox.state().parked) == (1, 1)
    assert inbox.parked()[0].last_error == "ParkMessage: its amount differs from the ledger's"


@pytest.mark.parametrize("is_possible", [True, False])
def test_a_message_that_failed_too_often_is_given_up(
    inbox: Inbox[Session], engine: Engine, deliver: Deliver, is_possible: bool
) -> None:
    def give_up(session: Session, message: InboxMessage, reason: str) -> None:
        session.execute(insert(CREDITS).values(id=f"refused {message.text}", order_id=reason))
        if not is_possible:
            raise RuntimeError("the order cannot be cancelled")

    inbox.put(deliver("bad"))
    assert inbox.drain(refusing("bad"), max_tries=0, give_up=give_up).parked == 1
    assert inbox.state().parked == (0 if is_possible else 1)
    assert credited(engine) == (["ValueError: bad is refused"] if is_possible else [])


def test_work_that_is_interrupted_leaves_all_messages(inbox: Inbox[Session], engine: Engine, deliver: Deliver) -> None:
    inbox.put(deliver("1", "2"))
    with pytest.raises(KeyboardInterrupt):
        inbox.drain(_interrupt)
    assert (inbox.state().new, credited(engine)) == (2, [])


def test_messages_of_the_callers_transaction_wait_when_it_commits(inbox: Inbox[Session], engine: Engine) -> None:
    for is_committed in (False, True):
        with Session(engine) as session:
            inbox.put_in(session, [Message.of("shortages", "order 1"), Message.of("shortages", "order 2")])
            session.commit() if is_committed else session.rollback()
        assert inbox.state().new == 2 * is_committed


def test_a_database_without_the_table_is_an_error_and_not_a_failure(
    inbox: Inbox[Session], engine: Engine, deliver: Deliver
) -> None:
    INBOX.drop(engine)
    with pytest.raises(DBAPIError, match="rocketmq_inbox"):
        inbox.put(deliver("1"))
    with pytest.raises(DBAPIError, match="rocketmq_inbox"):
        inbox.drain(credit)


def test_workers_side_by_side_process_each_message_once(engine: Engine, deliver: Deliver) -> None:
    orders = [f"{order:03}" for order in range(300)]
    Inbox(sessionmaker(engine), "credits").put(deliver(*orders))

    def work() -> None:
        worker = Inbox(sessionmaker(engine), "credits")
        while worker.is_due():
            worker.drain(credit, batch_size=7)

    with ThreadPoolExecutor(4) as threads:
        for worker in [threads.submit(work) for _ in range(4)]:
            worker.result(120)
    assert credited(engine) == orders


def test_a_clock_that_went_back_hides_no_new_message(inbox: Inbox[Session], clock: Clock, deliver: Deliver) -> None:
    inbox.put(deliver("1"))
    assert inbox.drain(credit).handled == 1
    clock.pass_s(-3600)
    inbox.put(deliver("2"))
    assert inbox.drain(credit).handled == 1


@pytest.mark.parametrize("consumer", ["", "c" * 256])
def test_a_consumer_name_that_does_not_fit_is_refused(engine: Engine, consumer: str) -> None:
    with pytest.raises(ValueError, match="1 to 255 characters"):
        Inbox(sessionmaker(engine), consumer)


def test_a_migration_makes_and_drops_the_table(sqlite_url: str) -> None:
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        create_inbox(op)
        assert [index["name"] for index in inspect(connection).get_indexes(INBOX.name)] == ["ix_rocketmq_inbox_due"]
        drop_inbox(op)
        assert inspect(connection).get_table_names() == []
    engine.dispose()


def test_messages_of_an_outbox_are_read_without_a_lock_and_removed_when_they_are_done(
    inbox: Inbox[Session], clock: Clock, deliver: Deliver
) -> None:
    inbox.put(deliver("bad"))
    inbox.drain(refuse_all)
    clock.pass_s(0.5)
    inbox.put(deliver("1", "2"))
    assert [message.text for message in inbox.due()] == ["1", "2"]
    clock.pass_s(0.5)
    due = inbox.due()
    assert [message.text for message in due] == ["1", "2", "bad"], "the failed one is due now"
    assert [message.text for message in inbox.due(2)] == ["1", "2"]
    assert inbox.done([message.key for message in due[1:]]) == 2
    assert inbox.done([message.key for message in due[1:]]) == 0
    assert [message.text for message in inbox.due()] == ["1"]
    assert Inbox(sessionmaker(inbox._sessions.kw["bind"]), "stock").done([due[0].key]) == 0  # type: ignore[attr-defined]


def test_dismissed_messages_stay_as_a_record_and_are_never_processed(
    inbox: Inbox[Session], engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    inbox.put(deliver("bad", "worse"))
    while inbox.state().waiting:
        inbox.drain(refuse_all, max_tries=0)
    bad = next(message for message in inbox.parked() if message.text == "bad")
    assert inbox.dismiss([bad.key, "another key"]) == 1
    assert inbox.dismiss([bad.key]) == 0
    clock.pass_s(10_000)
    inbox.put(deliver("bad"))
    assert (inbox.retry(), inbox.drain(credit).handled) == (1, 1)
    assert credited(engine) == ["worse"]
    state = inbox.state()
    assert (state.waiting, state.parked, state.oldest_received_at_ms, inbox.is_due()) == (0, 0, None, False)
    with engine.connect() as connection:
        assert connection.execute(select(INBOX.c.status)).scalars().all() == [InboxStatus.DISMISSED.value]


def test_state_tells_messages_that_fail_while_others_pass_and_the_age_of_new_ones(
    inbox: Inbox[Session], clock: Clock, deliver: Deliver
) -> None:
    inbox.put(deliver("bad"))
    began_ms = clock.now_ms
    inbox.drain(refusing("bad"))
    clock.pass_s(1)
    inbox.put(deliver("good"))
    state = inbox.state()
    assert (state.failed, state.suspected, state.new, state.oldest_new_at_ms) == (1, 0, 1, clock.now_ms)
    inbox.drain(refusing("bad"))
    state = inbox.state()
    assert (state.failed, state.suspected, state.new, state.oldest_new_at_ms) == (1, 1, 0, None)
    assert state.oldest_received_at_ms == began_ms


class Killed(BaseException):
    """Simulates kill -9, because no handler catches this exception."""


def killing(*orders: str) -> Callable[[Session, Sequence[InboxMessage]], None]:
    def handle(session: Session, messages: Sequence[InboxMessage]) -> None:
        credit(session, messages)
        if any(message.text in orders for message in messages):
            raise Killed

    return handle


def test_a_message_that_kills_its_process_is_tried_alone_and_is_parked_after_the_others_passed(
    engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    def worker() -> Inbox[Session]:
        return Inbox(sessionmaker(engine), "credits", clock.world())

    deaths = 0

    def drain(inbox: Inbox[Session], *, one_by_one: bool = False) -> bool:
        """Processes the inbox. Returns False if the process was killed."""
        nonlocal deaths
        try:
            inbox.drain(killing("bad"), max_tries=2, one_by_one=one_by_one)
        except Killed:
            deaths += 1
            return False
        return True

    inbox = worker()
    orders = [str(order) for order in range(20)]
    inbox.put(deliver("bad", *orders))
    assert not drain(inbox)
    assert inbox.state().new == 21, "nothing is lost"
    while not drain(worker(), one_by_one=True):
        assert inbox.state().failed >= 1, "it is recorded before it is tried"
    drain(worker())
    assert credited(engine) == sorted(orders)
    assert inbox.state().failed == 1
    for number in range(40):
        clock.pass_s(70)
        inbox.put(deliver(f"later {number}"))
        alive = worker()
        while not drain(alive):
            alive = worker()
        inbox.put(deliver(f"latest {number}"))
        drain(alive)
        if inbox.state().parked:
            break
        clock.pass_s(70)
        drain(alive)
    (parked,) = inbox.parked()
    assert (parked.text, parked.last_error) == ("bad", "ProcessEnded: the process ended while it processed this message")
    assert deaths < 12
    assert len(credited(engine)) > 20


def test_one_by_one_takes_a_batch_and_messages_that_were_recorded_before_they_were_tried_leave_no_trace(
    inbox: Inbox[Session], engine: Engine, deliver: Deliver
) -> None:
    inbox.put(deliver(*map(str, range(10))))
    assert inbox.drain(credit, one_by_one=True, batch_size=4).handled == 4, "one batch"
    assert inbox.state().new == 6
    assert inbox.drain(credit, one_by_one=True).handled == 6
    assert (len(credited(engine)), inbox.state().waiting) == (10, 0)


def test_sessions_may_be_context_managers_that_commit_and_reading_ones_are_used_to_read(engine: Engine, deliver: Deliver) -> None:
    opened: list[str] = []

    @contextmanager
    def writing() -> Iterator[Session]:
        opened.append("writing")
        with engine.begin() as connection, Session(connection) as session:
            yield session
            session.flush()

    @contextmanager
    def reading() -> Iterator[Session]:
        opened.append("reading")
        with Session(engine) as session:
            yield session

    inbox = Inbox(writing, "credits", reading=reading)
    inbox.put(deliver("1", "2"))
    with pytest.raises(KeyboardInterrupt):
        inbox.drain(_interrupt)
    assert opened == ["writing"] * 2
    assert (inbox.is_due(), inbox.state().new, len(inbox.due()), inbox.parked()) == (True, 2, 2, [])
    assert opened[2:] == ["reading"] * 4
    assert inbox.drain(credit).handled == 2
    assert credited(engine) == ["1", "2"]


def _interrupt(session: Session, messages: Sequence[InboxMessage]) -> None:
    credit(session, messages)
    raise KeyboardInterrupt


def test_a_message_s_key_is_known_before_it_is_stored(inbox: Inbox[Session], deliver: Deliver) -> None:
    (message,) = deliver("1")
    inbox.put([message])
    assert [row.key for row in inbox.due()] == [inbox.key_of(message)] == ["id-of-1:offset-of-1"]
    assert inbox.key_of(Message.of("orders", "1")) != inbox.key_of(Message.of("orders", "1"))


def test_the_inbox_keeps_each_message_until_it_is_processed(inbox: Inbox[Session], engine: Engine, deliver: Deliver) -> None:
    messages = deliver("1", "2", "3")
    keys = [inbox.key_of(message) for message in messages]
    Inbox(sessionmaker(engine), "another").put(messages)
    inbox.put(messages[:2])
    with Session(engine) as session:
        assert inbox.kept_in(session, keys) == set(keys[:2])
    inbox.drain(refusing("2"), max_tries=0)
    inbox.dismiss([keys[1]])
    with Session(engine) as session:
        assert inbox.kept_in(session, keys) == {keys[1]}, "a dismissed message stays"


def test_a_message_that_failed_is_tried_although_all_batches_are_full(
    inbox: Inbox[Session], engine: Engine, clock: Clock, deliver: Deliver
) -> None:
    inbox.put(deliver("bad"))
    inbox.drain(refuse_all)
    clock.pass_s(1)
    inbox.put(deliver(*map(str, range(20))))
    assert inbox.drain(credit, batch_size=4, max_batches=2).handled == 9
    assert "bad" in credited(engine)


def test_redeliveries_that_change_nothing_do_not_make_failures_count(
    inbox: Inbox[Session], clock: Clock, deliver: Deliver
) -> None:
    def refuse_new_ones(session: Session, messages: Sequence[InboxMessage]) -> bool:
        if any(message.text.startswith("new") for message in messages):
            refuse_all(session, messages)
        return False

    inbox.put(deliver("new order"))
    for number in range(10):
        inbox.put(deliver(f"redelivered {number}"))
        assert inbox.drain(refuse_new_ones, max_tries=2).parked == 0
        clock.pass_s(2)
    assert inbox.state().failed == 1


def test_an_inbox_of_a_module_uses_the_world_of_its_caller(engine: Engine, deliver: Deliver) -> None:
    inbox = Inbox(sessionmaker(engine), "credits")
    early, late = (World(wall_ns=lambda seconds=seconds: seconds * 10**9) for seconds in (1_000, 2_000))  # type: ignore[misc]
    with in_world(late):
        inbox.put(deliver("1"))
        assert inbox.drain(credit).handled == 1
    with in_world(early):
        inbox.put(deliver("2", "3"))
        assert inbox.state().oldest_received_at_ms == 1_000_000
        assert inbox.drain(credit).handled == 2


def test_a_pause_of_one_process_does_not_delay_another_world(engine: Engine, deliver: Deliver) -> None:
    inbox = Inbox(sessionmaker(engine), "credits")
    inbox.put(deliver(*map(str, range(10))))
    with in_world(World()):
        inbox.drain(refuse_all)
        assert inbox.drain(credit).handled == 0
    with in_world(World()):
        assert inbox.drain(credit).handled == 5
