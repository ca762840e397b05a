"""The producer of transactional messages (RocketMQ's TransactionMQProducer)."""

import asyncio
import logging
from typing import Never

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.client.checks.settings_check import check_whole_number, refuse_unknown
from rocketmq_broker.client.errors import ClientError, MessageRefused
from rocketmq_broker.client.event_loop_thread import CallNotMade
from rocketmq_broker.client.instance.calls import ask_for_success
from rocketmq_broker.client.instance.instance import RequestHandlers
from rocketmq_broker.client.instance.parked_requests import ParkedRequests
from rocketmq_broker.client.instance.routes import DEFAULT_TOPIC_QUEUE_NUMS
from rocketmq_broker.client.listeners import TransactionListeners
from rocketmq_broker.client.producer.producer import Producer, RunningProducer
from rocketmq_broker.client.producer.send_result import LocalTransactionState, SendResult, TransactionSendResult
from rocketmq_broker.client.producer.wire_message import check_message
from rocketmq_broker.client.push.listener_runners import Runners
from rocketmq_broker.client.transaction.check_answers import CheckAnswers
from rocketmq_broker.client.transaction.half_search import HalfSearch
from rocketmq_broker.client.transaction.topic_listeners import TopicListeners
from rocketmq_broker.client.transaction.transaction_decision import (
    decision_and_failure,
    end_after_local_transaction,
    end_from_outside,
    state_without_listener,
)
from rocketmq_broker.message import Message, properties
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.remoting.tls import ClientTls
from rocketmq_broker.world import current_world

logger = logging.getLogger(__name__)

_LOCAL_TRANSACTION_GRACE_S = 1.8


class TransactionProducer(Producer):
    """Sends half messages, runs local transactions, sends the decisions, and answers check-backs."""

    def __init__(
        self,
        group: str,
        listener: TransactionListeners,
        *,
        namesrv_addr: str | None = None,
        credentials: SessionCredentials | None = None,
        tls: ClientTls | bool | None = None,
        rpc_hook: RpcHook | None = None,
        namespace: str | None = None,
        send_timeout_ms: int = 3000,
        retry_times_when_send_failed: int = 2,
        compress_message_body_over: int = 4096,
        default_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS,
        transaction_threads: int = 32,
        check_threads: int = 4,
        check_request_hold_max: int = 2000,
        **unknown: Never,
    ) -> None:
        """`listener` is a listener for all topics, or a dict of listeners by topic.

        At most `transaction_threads` local transactions and `check_threads` check-backs run at a time. Async listeners run as
        tasks. At most `check_request_hold_max` check-backs wait. Further check-backs are dropped, and the broker repeats them.
        Raises IllegalConfiguration if a setting is invalid.
        """
        refuse_unknown(self, unknown)
        check_whole_number("transaction_threads", transaction_threads, minimum=1)
        check_whole_number("check_threads", check_threads, minimum=1)
        check_whole_number("check_request_hold_max", check_request_hold_max, minimum=1)
        super().__init__(
            group,
            namesrv_addr=namesrv_addr,
            credentials=credentials,
            tls=tls,
            rpc_hook=rpc_hook,
            namespace=namespace,
            send_timeout_ms=send_timeout_ms,
            retry_times_when_send_failed=retry_times_when_send_failed,
            compress_message_body_over=compress_message_body_over,
            default_topic_queue_nums=default_topic_queue_nums,
        )
        self._listeners = TopicListeners(f"producer {group}", listener)
        self._check_request_hold_max = check_request_hold_max
        world = current_world()
        self._executing = Runners(f"transaction-{group[:100]}", transaction_threads, world)
        self._checking = Runners(f"check-{group[:100]}", check_threads, world)
        self._transactions = Tasks()

    async def start(self) -> None:
        """Starts the producer, which then answers check-backs. Raises IllegalConfiguration if there is no valid listener."""
        self._lifecycle.require_new()
        self._listeners.check()
        await super().start()

    async def _stop(self, running: RunningProducer) -> None:
        """Waits up to 1.8 s for running local transactions, and stops the parts.

        The broker checks back for unfinished transactions.
        """
        await self._transactions.settle(_LOCAL_TRANSACTION_GRACE_S)
        for runners in (self._executing, self._checking):
            await runners.stop(0.2)
        await self._transactions.stop()
        await super()._stop(running)

    async def count_discarded(self) -> int:
        """Returns the number of this group's discarded messages that have not been resumed.

        For Apache's brokers, counts the discarded messages of all groups. Raises ClientError if a broker does not respond.
        """
        instance = self._lifecycle.running().instance
        requests = ParkedRequests(instance.calls)
        return sum(await asyncio.gather(*(requests.discarded(address, self.group) for address in instance.routes.masters)))

    async def end_transaction(self, transaction_id: str, state: LocalTransactionState) -> None:
        """Ends a transaction of this group without its listener. The decision is durable on return.

        This method is for coordinators such as Seata. The producer's listener must return UNKNOWN until the global transaction
        ends. `transaction_id` is `TransactionSendResult.transaction_id`. Any producer of the group may call this method, in any
        process. Call it once for a transaction: this project's broker refuses a second decision, and Apache's broker delivers the
        message again after a second COMMIT. Raises ValueError if `state` is UNKNOWN, TransactionNotFound if no half message has
        this id, and BrokerError if the broker refuses the decision. Raises BrokerUnreachable if it is unknown whether the broker
        received the decision. A broker that did not receive the decision sends a check-back.
        """
        if state is LocalTransactionState.UNKNOWN:
            raise ValueError("state must be COMMIT_MESSAGE or ROLLBACK_MESSAGE, not UNKNOWN")
        instance = self._lifecycle.running().instance
        address, half = await HalfSearch(instance.calls).newest(transaction_id)
        header = end_from_outside(self.group, half, transaction_id, state)
        await ask_for_success(
            instance.remoting, address, RequestCode.END_TRANSACTION, header, timeout_ms=self._settings.timeout_ms
        )

    async def send_message_in_transaction(self, message: Message, arg: object = None) -> TransactionSendResult:
        """Sends the half message, runs the local transaction with `arg` in the caller's context, and sends the decision.

        Raises IllegalConfiguration if the topic has no listener, and another ClientError if the half message may not be stored.
        In both cases the local transaction did not run. Does not raise once the local transaction has run. Cancelling this call
        does not cancel the transaction.
        """
        running = self._lifecycle.running()
        check_message(message)
        if properties.DELAY_TIME_LEVEL in message.properties:
            raise MessageRefused("a transactional message cannot be delayed: send it without a delay level")
        self._listeners.wanted(message.topic)
        return await asyncio.shield(
            self._transactions.start("client-transaction", self._transaction(running, message, arg), is_awaited=True)
        )

    async def _transaction(self, running: RunningProducer, message: Message, arg: object) -> TransactionSendResult:
        half = message.with_properties({properties.TRANSACTION_PREPARED: "true", properties.PRODUCER_GROUP: self.group})
        sent = await running.sender.send(half, new_id_each_attempt=True)
        state, failure = state_without_listener(sent.send_status), None
        if state is None:
            state, failure = await self._execute(half.with_properties({properties.UNIQUE_KEY: sent.message_id}), arg)
        await self._end(running, sent, state, failure)
        return TransactionSendResult(
            send_status=sent.send_status,
            message_id=sent.message_id,
            offset_message_id=sent.offset_message_id,
            queue=sent.queue,
            queue_offset=sent.queue_offset,
            transaction_id=sent.message_id,
            local_transaction_state=state,
        )

    async def _execute(self, message: Message, arg: object) -> tuple[LocalTransactionState, str | None]:
        """Runs the local transaction. Returns the listener's decision, and its error in one line or None."""
        execute = self._listeners.wanted(message.topic).execute_local_transaction
        try:
            answer = await self._executing.run_as_caller(execute, lambda: execute(message, arg))
        except CallNotMade:
            return LocalTransactionState.ROLLBACK_MESSAGE, None
        except Exception as error:
            return decision_and_failure(None, error, message.transaction_id)
        return decision_and_failure(answer, None, message.transaction_id)

    async def _end(self, running: RunningProducer, sent: SendResult, state: LocalTransactionState, failure: str | None) -> None:
        try:
            header = end_after_local_transaction(self.group, sent, state)
            await running.requests.end_transaction(sent.queue.broker_name, header, failure)
        except (ClientError, ValueError) as error:
            logger.warning(
                "%s of transaction %s was not sent: %s; the broker will check back", state.name, sent.message_id, error
            )

    def _handlers(self) -> RequestHandlers:
        check_back = CheckAnswers(self.group, self._listeners, self._checking, self._check_request_hold_max, self._namespace)
        return {**super()._handlers(), RequestCode.CHECK_TRANSACTION_STATE: check_back.on_check}
