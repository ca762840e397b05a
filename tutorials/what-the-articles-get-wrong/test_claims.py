"""Tests claims about transactional messages that many articles repeat."""

import threading

import pytest

from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeStatus,
    EventLoopThread,
    LocalTransactionState,
    Message,
    MessageExt,
    TransactionProducer,
)
from rocketmq_broker.message import topics
from rocketmq_broker.testing import RocketMQ, SyncRocketMQ

COMMIT, ROLLBACK, UNKNOWN = (
    LocalTransactionState.COMMIT_MESSAGE,
    LocalTransactionState.ROLLBACK_MESSAGE,
    LocalTransactionState.UNKNOWN,
)


class Listener:
    """A listener that returns the configured states from the local transaction and from check-backs."""

    def __init__(self, executed: LocalTransactionState, checked: LocalTransactionState = UNKNOWN) -> None:
        self.executed, self.checked = executed, checked
        self.checks = 0

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return self.executed

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checks += 1
        return self.checked


async def sent(rocketmq: RocketMQ, listener: Listener) -> None:
    """Sends order 1 in a transaction."""
    producer = await rocketmq.transaction_producer("shop", listener)
    await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]))


async def test_a_half_message_is_in_the_half_topic_and_the_op_topic_has_an_op_message_only_once_it_is_decided(
    rocketmq: RocketMQ,
) -> None:
    await sent(rocketmq, Listener(UNKNOWN, COMMIT))
    counts = [len(await rocketmq.messages(topic)) for topic in (topics.HALF_TOPIC, topics.OP_HALF_TOPIC, "orders")]
    assert counts == [1, 0, 0]
    await rocketmq.advance(minutes=2)
    counts = [len(await rocketmq.messages(topic)) for topic in (topics.HALF_TOPIC, topics.OP_HALF_TOPIC, "orders")]
    assert counts == [1, 1, 1]


async def test_fifteen_is_a_number_of_checks_and_not_of_seconds(rocketmq: RocketMQ) -> None:
    listener = Listener(UNKNOWN)
    await sent(rocketmq, listener)
    await rocketmq.advance(seconds=16)
    assert listener.checks == 1
    await rocketmq.advance(minutes=30)
    assert listener.checks == 15


async def test_after_the_last_check_the_message_is_kept_and_not_rolled_back(rocketmq: RocketMQ) -> None:
    await sent(rocketmq, Listener(UNKNOWN))
    await rocketmq.advance(minutes=30)
    assert [one.state for one in await rocketmq.decided("order-1")] == ["discarded"]
    assert [message.text for message in await rocketmq.messages(topics.CHECK_MAX_TIME_TOPIC)] == ["a book"]


class DatabaseAway(Exception):
    """Raised while the database cannot be reached."""


class BookKeeper(Listener):
    """A listener that stores the order, but cannot reach the database during the first check-backs."""

    def __init__(self, if_the_database_is_away: LocalTransactionState) -> None:
        super().__init__(UNKNOWN)
        self.if_away = if_the_database_is_away
        self.is_away = True

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return self.if_away if self.is_away else COMMIT


@pytest.mark.parametrize(("answer", "delivered"), [(ROLLBACK, 0), (UNKNOWN, 1)])
async def test_who_cannot_ask_the_database_must_not_answer_rollback(
    rocketmq: RocketMQ, answer: LocalTransactionState, delivered: int
) -> None:
    keeper = BookKeeper(answer)
    await sent(rocketmq, keeper)
    await rocketmq.advance(minutes=2)
    keeper.is_away = False
    await rocketmq.advance(minutes=2)
    assert len(await rocketmq.messages("orders")) == delivered


class AmbiguousCommit(Listener):
    """A listener that stores the order, but cannot determine the commit's result, because the driver raises an exception."""

    def __init__(self, answer: LocalTransactionState) -> None:
        super().__init__(answer, COMMIT)  # the check-back finds the order in the database


@pytest.mark.parametrize(("answer", "delivered"), [(ROLLBACK, 0), (UNKNOWN, 1)])
async def test_a_commit_whose_outcome_is_not_known_must_not_be_answered_with_rollback(
    rocketmq: RocketMQ, answer: LocalTransactionState, delivered: int
) -> None:
    await sent(rocketmq, AmbiguousCommit(answer))
    await rocketmq.advance(minutes=2)
    assert len(await rocketmq.messages("orders")) == delivered


async def test_commit_for_a_transaction_that_one_does_not_know_invents_a_credit(rocketmq: RocketMQ) -> None:
    dying = await rocketmq.transaction_producer("shop", Listener(UNKNOWN))
    rocketmq.lose_next_answer()  # so the local transaction never runs
    with pytest.raises(Exception, match="could not be sent"):
        await dying.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]))
    await dying.shutdown()
    await rocketmq.transaction_producer("shop", Listener(UNKNOWN, checked=COMMIT))
    await rocketmq.advance(minutes=2)
    await rocketmq.committed("order-1")


async def test_the_delivered_message_keeps_tran_msg_and_has_its_own_store_time_and_queue_offset(rocketmq: RocketMQ) -> None:
    await sent(rocketmq, Listener(ROLLBACK))  # so the second half message has queue offset 1
    await sent(rocketmq, Listener(UNKNOWN, COMMIT))
    half = (await rocketmq.messages(topics.HALF_TOPIC))[1]
    await rocketmq.advance(minutes=2)
    [delivered] = await rocketmq.messages("orders")
    assert delivered.properties["TRAN_MSG"] == "true"
    assert delivered.store_timestamp > half.store_timestamp
    assert (half.queue_offset, delivered.queue_offset) == (1, 0)
    assert delivered.prepared_transaction_offset == half.commit_log_offset  # only this field refers to the half message


@pytest.mark.parametrize(("settings", "checks"), [({}, 15), ({"transactionCheckMax": 5}, 5)])
async def test_the_broker_checks_fifteen_times_unless_its_settings_differ(settings: dict[str, int], checks: int) -> None:
    listener = Listener(UNKNOWN)
    async with RocketMQ(settings) as rocketmq:
        await sent(rocketmq, listener)
        await rocketmq.advance(minutes=30)
    assert listener.checks == checks


@pytest.mark.parametrize(("timeout_s", "checks"), [(6, 1), (90, 0)])
async def test_the_timeout_is_the_age_at_which_checks_begin(timeout_s: int, checks: int) -> None:
    listener = Listener(UNKNOWN)
    async with RocketMQ({"transactionTimeOut": timeout_s * 1000}) as rocketmq:
        await sent(rocketmq, listener)
        await rocketmq.advance(seconds=30)
        assert listener.checks == checks
        await rocketmq.advance(minutes=2)
        assert listener.checks > checks  # an older half message is checked, and checked again


async def test_the_immunity_time_is_the_earliest_check_and_not_the_latest(rocketmq: RocketMQ) -> None:
    listener = Listener(UNKNOWN, COMMIT)
    producer = await rocketmq.transaction_producer("shop", listener)
    immune = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "300"}
    await producer.send_message_in_transaction(Message.of("orders", "a book", user_properties=immune))
    await rocketmq.advance(seconds=299)
    assert listener.checks == 0
    await rocketmq.advance(minutes=2)
    assert listener.checks == 1


async def test_a_check_needs_a_stored_half_message_and_a_missing_decision(rocketmq: RocketMQ) -> None:
    listener = Listener(COMMIT, COMMIT)
    producer = await rocketmq.transaction_producer("shop", listener)
    rocketmq.refuse_sends()
    with pytest.raises(Exception, match="refused"):
        await producer.send_message_in_transaction(Message.of("orders", "not stored", keys=["order-1"]))
    rocketmq.accept_sends()
    await rocketmq.advance(minutes=2)
    assert listener.checks == 0
    rocketmq.lose_next_decision()
    await producer.send_message_in_transaction(Message.of("orders", "stored, and answered", keys=["order-2"]))
    await rocketmq.advance(minutes=2)
    assert listener.checks == 1


async def test_after_a_failed_send_the_producer_sends_no_rollback_and_the_half_message_waits(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("shop", Listener(COMMIT, ROLLBACK))
    rocketmq.lose_next_answer()
    with pytest.raises(Exception, match="could not be sent"):
        await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]))
    await rocketmq.advance(seconds=1)
    assert len(await rocketmq.pending("order-1")) == 1
    await rocketmq.advance(seconds=10)
    await rocketmq.rolled_back("order-1")  # by the check-back
    assert [message.text for message in await rocketmq.messages(topics.HALF_TOPIC)] == ["a book"]  # but not deleted


def test_the_sender_runs_the_local_transaction_and_another_thread_answers_check_backs() -> None:
    threads: list[threading.Thread] = []

    class Noting:
        def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
            threads.append(threading.current_thread())
            return UNKNOWN

        def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            threads.append(threading.current_thread())
            return COMMIT

    with SyncRocketMQ() as rocketmq, EventLoopThread() as loop:
        client = TransactionProducer("shop", Noting(), namesrv_addr=rocketmq.namesrv_addr)
        with loop.running(client) as producer:
            loop.run(producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"])))
            rocketmq.wait_until(lambda: len(threads) == 2)
    assert [thread is threading.current_thread() for thread in threads] == [True, False]


async def test_the_listener_that_raises_says_unknown_and_is_asked_again(rocketmq: RocketMQ) -> None:
    class Raises(Listener):
        async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            self.checks += 1
            if self.checks == 1:
                raise DatabaseAway
            return COMMIT

    await sent(rocketmq, Raises(UNKNOWN))
    await rocketmq.advance(minutes=3)
    await rocketmq.committed("order-1")


async def test_exactly_once_ends_at_the_broker_a_consumer_may_get_the_message_again(rocketmq: RocketMQ) -> None:
    """A consumer receives the message again after it has returned RECONSUME_LATER. This test is the exercise's solution."""
    seen: list[str] = []

    async def fails_once(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        seen.append(messages[0].text)
        return ConsumeStatus.RECONSUME_LATER if len(seen) == 1 else ConsumeStatus.CONSUME_SUCCESS

    producer = await rocketmq.transaction_producer("shop", Listener(COMMIT))
    await producer.create_topic("orders")
    await rocketmq.consumer("credits", "orders", fails_once)
    await producer.send_message_in_transaction(Message.of("orders", "a book", keys=["order-1"]))
    await rocketmq.advance(minutes=1)
    assert seen == ["a book", "a book"]
    await rocketmq.committed("order-1")
