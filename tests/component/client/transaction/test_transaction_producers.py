"""Tests of transactional messages with a broker: commit, rollback, check-back, and a caller that does not wait."""

from collections.abc import Mapping

import pytest

from rocketmq_broker.client import BrokerError, LocalTransactionState, Producer, SendStatus, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing import RocketMQ
from tests.e2e.clients import PATIENT, Inbox, consumer, running

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
UNASKED = {"transactionTimeOut": "120000"}
"""Of a broker that checks back later than any test waits: what is delivered, its producer has decided."""


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    return {"transactionCheckInterval": "1000"}


class Listener:
    """A transaction listener that takes its decision from `arg`, and records commits in a dict instead of a database."""

    def __init__(self) -> None:
        self.database: dict[str, LocalTransactionState] = {}
        self.executed: list[str] = []
        self.checked: list[MessageExt] = []

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        assert message.transaction_id
        self.executed.append(message.body.decode())
        state, said = arg  # type: ignore[misc]
        self.database[message.transaction_id] = state
        if isinstance(said, Exception):
            raise said
        return said  # type: ignore[no-any-return]

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        assert message.transaction_id
        self.checked.append(message)
        return self.database.get(message.transaction_id, ROLLBACK)


class Forgetful(Listener):
    """A transaction listener that returns UNKNOWN at each check-back."""

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return UNKNOWN


@pytest.mark.parametrize("rocketmq_settings", [UNASKED], ids=["unasked"])
async def test_what_was_committed_arrives_and_what_was_rolled_back_does_not(
    rocketmq_settings: object, rocketmq: RocketMQ
) -> None:
    listener, inbox = Listener(), Inbox()
    async with (
        running(TransactionProducer("orders", listener, namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer,
        running(consumer(rocketmq.namesrv_addr, "credits", "orders", inbox)),
    ):
        sent = await producer.send_message_in_transaction(Message.of("orders", b"kept", tags="created"), (COMMIT, COMMIT))
        await producer.send_message_in_transaction(Message.of("orders", b"dropped"), (ROLLBACK, ROLLBACK))
        await producer.send_message_in_transaction(Message.of("orders", b"after"), (COMMIT, COMMIT))
        await rocketmq.wait_until(lambda: len(inbox.bodies) == 2)
    assert sorted(inbox.bodies) == ["after", "kept"]
    kept = next(message for message in inbox.messages if message.body == b"kept")
    assert (sent.send_status, sent.local_transaction_state) == (SendStatus.SEND_OK, COMMIT)
    assert kept.transaction_id == sent.transaction_id
    assert kept.tags == "created"
    assert listener.checked == []


@pytest.mark.parametrize("said", [UNKNOWN, None, RuntimeError("the process stumbled")])
async def test_without_a_decision_the_broker_asks_and_the_database_decides(rocketmq: RocketMQ, said: object) -> None:
    listener, inbox = Listener(), Inbox()
    async with (
        running(TransactionProducer("orders", listener, namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer,
        running(consumer(rocketmq.namesrv_addr, "credits", "orders", inbox)),
    ):
        result = await producer.send_message_in_transaction(Message.of("orders", b"kept"), (COMMIT, said))
        await producer.send_message_in_transaction(Message.of("orders", b"dropped"), (ROLLBACK, said))
        await rocketmq.wait_until(
            lambda: inbox.bodies == ["kept"] and {message.body for message in listener.checked} == {b"kept", b"dropped"}
        )
    assert result.local_transaction_state is UNKNOWN
    assert {message.topic for message in listener.checked} == {"orders"}
    for body in (b"kept", b"dropped"):
        times = [message.transaction_check_times for message in listener.checked if message.body == body]
        assert times[0] == 1
        assert times == sorted(set(times))


async def test_each_check_back_asks_the_listener_again_until_it_can_decide(rocketmq: RocketMQ) -> None:
    class Undecided(Listener):
        def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            state = super().check_local_transaction(message)
            return state if sum(message.body == one.body for one in self.checked) > 2 else UNKNOWN

    listener, inbox = Undecided(), Inbox()
    async with (
        running(TransactionProducer("orders", listener, namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer,
        running(consumer(rocketmq.namesrv_addr, "credits", "orders", inbox)),
    ):
        await producer.send_message_in_transaction(Message.of("orders", b"dropped"), (ROLLBACK, UNKNOWN))
        await producer.send_message_in_transaction(Message.of("orders", b"kept"), (COMMIT, UNKNOWN))
        await rocketmq.wait_until(lambda: inbox.bodies == ["kept"])
        asked_of_kept = [message.body for message in listener.checked].count(b"kept")
        await rocketmq.wait_until(lambda: [message.body for message in listener.checked].count(b"dropped") > 2)
    assert asked_of_kept >= 3


async def test_a_producer_that_has_sent_nothing_yet_answers_for_one_of_its_group_that_is_gone(rocketmq: RocketMQ) -> None:
    gone, heir, inbox = Forgetful(), Listener(), Inbox()
    async with running(TransactionProducer("orders", gone, namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer:
        await producer.send_message_in_transaction(Message.of("orders", b"kept"), (COMMIT, UNKNOWN))
    heir.database = gone.database
    async with (
        running(TransactionProducer("orders", heir, namesrv_addr=rocketmq.namesrv_addr, **PATIENT)),
        running(consumer(rocketmq.namesrv_addr, "credits", "orders", inbox)),
    ):
        await rocketmq.wait_until(lambda: inbox.bodies == ["kept"])
    assert len(heir.checked) >= 1


@pytest.mark.parametrize("rocketmq_settings", [{"rejectTransactionMessage": "true"}], ids=["refusing"])
async def test_a_broker_that_refuses_transactions_keeps_the_local_transaction_from_running(
    rocketmq_settings: object,
    rocketmq: RocketMQ,
) -> None:
    listener = Listener()
    async with running(TransactionProducer("orders", listener, namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer:
        with pytest.raises(BrokerError) as raised:
            await producer.send_message_in_transaction(Message.of("orders", b"x"), (COMMIT, COMMIT))
    assert raised.value.code == ResponseCode.NO_PERMISSION
    assert listener.executed == []


async def test_other_ways_to_send_arrive_too(rocketmq: RocketMQ) -> None:
    inbox = Inbox()
    async with (
        running(Producer("plain", namesrv_addr=rocketmq.namesrv_addr, **PATIENT)) as producer,
        running(consumer(rocketmq.namesrv_addr, "credits", "orders", inbox)),
    ):
        await producer.create_topic("orders", 2)
        first, second = await producer.queues("orders")
        assert (await producer.send(Message.of("orders", b"sync"), second)).queue == second
        await producer.send_oneway(Message.of("orders", b"oneway"))
        batch = await producer.send_batch([Message.of("orders", b"batch-1"), Message.of("orders", b"batch-2")], first)
        await producer.send(Message.of("orders", b"long " * 2000))
        await rocketmq.wait_until(lambda: len(inbox.bodies) == 5)
    assert len(batch.message_id.split(",")) == 2
    assert {body[:7] for body in inbox.bodies} == {"sync", "oneway", "batch-1", "batch-2", "long lo"}
    assert max(map(len, inbox.bodies)) == 10_000
