"""Sends transactional messages, through a synchronous interface to the TransactionProducer. Consumes compensating messages."""

import logging
from collections.abc import Callable
from typing import Final

from order_messages import credit_refused, order_created, stock_short
from order_service.adapters.order_history import OrderHistory
from order_service.adapters.visible_history import MAX_WAIT_S, newest_witnesses
from order_service.domain.history import PROPERTY, Witness
from order_service.service_layer.attempt import Attempt, Outcome
from rocketmq_broker.client import (
    ClientError,
    ConsumeFromWhere,
    MessageListener,
    PushConsumer,
    RpcHook,
    SendStatus,
    TransactionListeners,
    TransactionProducer,
)
from rocketmq_broker.message import Message
from service_runtime.messaging.client_loop import ClientLoop
from service_runtime.messaging.consumer_thread import ConsumerThread

PRODUCER_GROUP: Final = "order_service"
CONSUMER_GROUP: Final = "order_service"
_CONSUMER_THREADS: Final = 2
_LOCAL_TRANSACTION_ALLOWANCE_S: Final = 20.0
"""The time in seconds that is allowed for the local transaction, added to the send time-out.

Database lock time-outs are shorter.
"""
_HEALTH_TIMEOUT_S: Final = 4.0
_COUNT_TIMEOUT_S: Final = 2.0

logger = logging.getLogger(__name__)


class OrderBroker:
    """Sends orders and cancellations in transactions. Thread-safe. `start` succeeds without a running broker."""

    def __init__(
        self,
        listeners: TransactionListeners,
        *,
        namesrv_addr: str,
        send_timeout_ms: int,
        loop: ClientLoop,
        witness: Callable[[], str],
        rpc_hook: RpcHook | None = None,
        history: OrderHistory | None = None,
    ) -> None:
        """Creates the producer. `listeners` has one listener for each topic, for local transactions and check-backs.

        The producer runs on `loop`, which `start` starts. `rpc_hook` is called for each frame. `witness` returns the state
        of the order database, which each half message contains as evidence for check-backs. If `history` is given, `start`
        checks it against the newest messages, to detect an old copy of the database.
        """
        self._producer = TransactionProducer(
            PRODUCER_GROUP, listeners, namesrv_addr=namesrv_addr, send_timeout_ms=send_timeout_ms, rpc_hook=rpc_hook
        )
        self._loop = loop
        self._namesrv_addr = namesrv_addr
        self._witness = witness
        self._history = history
        self._wait_s = send_timeout_ms / 1000 + _LOCAL_TRANSACTION_ALLOWANCE_S

    def start(self) -> None:
        """Starts the producer, which joins its group so that it receives check-backs."""
        self._loop.start()
        self._loop.run(self._producer.start(), timeout_s=self._wait_s)
        if self._history is not None:
            self._history.compare(self._newest_witnesses)

    def _newest_witnesses(self) -> list[Witness]:
        """Returns the witnesses in the newest messages of orders; empty if the broker does not respond in time."""
        try:
            return self._loop.run(newest_witnesses(self._namesrv_addr), timeout_s=MAX_WAIT_S)
        except (ClientError, TimeoutError) as error:
            logger.warning("could not compare the order database with the newest messages: %s", error or "no answer")
            return []

    def stop(self) -> None:
        """Stops the producer, which leaves its group. Waits up to 5 s for running local transactions."""
        try:
            self._loop.run(self._producer.shutdown(), timeout_s=5.0)
        except (ClientError, TimeoutError) as error:
            logger.warning("the producer did not shut down cleanly: %s", error)
        self._loop.stop()

    def send_in_transaction(self, message: Message, attempt: Attempt) -> Outcome:
        """Sends the message in a transaction, and returns the outcome; see `service_layer.attempt.TransactionalSender`."""
        message = message.with_properties({PROPERTY: self._witness()})
        try:
            sent = self._loop.run(self._producer.send_message_in_transaction(message, attempt), timeout_s=self._wait_s)
            if sent.send_status is not SendStatus.SEND_OK:
                name = sent.send_status.name
                logger.warning("order %s: broker %s: %s; rolled back", attempt.wanted.order_id, sent.queue.broker_name, name)
        except TimeoutError:
            outcome = attempt.outcome
            return Outcome.UNKNOWN if outcome is Outcome.NOT_STARTED else outcome
        except ClientError as error:
            if attempt.outcome is Outcome.NOT_STARTED:
                logger.warning("order %s: the half message could not be sent: %s", attempt.wanted.order_id, error)
        return attempt.outcome

    def why_unready(self) -> str | None:
        """Returns a one-line reason why the broker cannot store half messages of orders now, or None if it can."""
        try:
            return self._loop.run(self._producer.why_unsendable(order_created.TOPIC), timeout_s=_HEALTH_TIMEOUT_S)
        except (ClientError, TimeoutError) as error:
            return str(error)

    def refusing_brokers(self) -> list[str]:
        """Returns a reason for each broker that cannot store half messages of orders.

        Returns an empty list if all brokers can store them, or if no broker has the topic.
        """
        try:
            return self._loop.run(self._producer.refusing_brokers(order_created.TOPIC), timeout_s=_HEALTH_TIMEOUT_S)
        except (ClientError, TimeoutError):
            return []

    def count_discarded(self) -> int | None:
        """Returns the number of discarded messages that have not been resumed, or None if the brokers do not respond."""
        try:
            return self._loop.run(self._producer.count_discarded(), timeout_s=_COUNT_TIMEOUT_S)
        except (ClientError, TimeoutError):
            return None


def compensation_consumer(
    listener: MessageListener, *, namesrv_addr: str, loop: ClientLoop, rpc_hook: RpcHook | None = None
) -> ConsumerThread:
    """Returns the consumer of shortages and refused credits. It starts at the first message of each queue.

    It runs on `loop`, and calls `listener` on a few threads. `rpc_hook` is called for each frame.
    """
    consumer = PushConsumer(
        CONSUMER_GROUP,
        namesrv_addr=namesrv_addr,
        rpc_hook=rpc_hook,
        consume_thread_max=_CONSUMER_THREADS,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    return ConsumerThread(consumer, loop, listener, {kind.TOPIC: kind.TAG for kind in (stock_short, credit_refused)})
