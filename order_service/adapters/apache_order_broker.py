"""Sends transactional messages with Apache's Python client for RocketMQ 5, which uses gRPC.

Half message, local transaction, decision and check-back work as in `order_broker`, with the same listeners. But Apache's client
has no transaction listener. So this module calls the listener after the half message is stored, and sends its decision. It also
gives the client a transaction checker, which calls the listener at check-backs. The API has no producer groups: the topic serves
as the group.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from order_messages import order_created
from order_service.adapters.failing_network import FailingNetwork
from order_service.service_layer.attempt import Attempt
from order_service.service_layer.sending import half_message_not_stored
from rocketmq_broker.client import LocalTransactionState, NotRunning, TransactionListener
from rocketmq_broker.message import Message
from rocketmq_broker.message.properties import UNIQUE_KEY
from service_runtime.messaging.apache_client import (
    ApacheRoute,
    apache_client,
    client_settings,
    of_apache,
    open_client,
    stopped,
    to_apache,
)

_UNKNOWN: Final = LocalTransactionState.UNKNOWN

logger = logging.getLogger(__name__)


class ApacheOrderBroker:
    """Sends orders and cancellations in transactions. Thread-safe. `start` succeeds without a running broker."""

    def __init__(
        self, listeners: Mapping[str, TransactionListener], *, endpoints: str, send_timeout_ms: int, network: FailingNetwork
    ) -> None:
        """`listeners`, one for each topic, run local transactions and answer check-backs. Their methods must be synchronous.

        The client tries each send up to three times, with a time-out of `send_timeout_ms` each. `network` drops requests at armed
        failpoints.
        """
        self._listeners = listeners
        self._endpoints = endpoints
        self._send_timeout_ms = send_timeout_ms
        self._network = network
        self._producer: Any = None
        self._route: ApacheRoute | None = None

    def start(self) -> None:
        """Starts the client, which then receives check-backs. Raises ClientError if Apache's client is not installed."""
        settings = client_settings(self._endpoints, self._send_timeout_ms)
        checker = TransactionChecks(self._listeners, self._network)
        self._producer = open_client("Producer", topics=tuple(self._listeners), checker=checker, **settings)
        self._route = ApacheRoute(self._producer, tuple(self._listeners), self._send_timeout_ms)

    def stop(self) -> None:
        """Stops the client, which leaves the producer groups. A running check-back may finish first."""
        if self._producer is not None:
            stopped("producer", self._producer)

    def send_in_transaction(self, message: Message, attempt: Attempt) -> None:
        """Sends the message in a transaction (`service_layer.sending.TransactionalSender`).

        The local transaction runs in the caller's thread, so the outcome is known on return.
        """
        transaction = self._running().begin_transaction()
        try:
            self._network.half_message_leaves(message.body)
            transaction_id = self._producer.send(to_apache(message), transaction).message_id
            self._network.half_message_is_answered(message.body, transaction_id)
        except Exception as error:  # the client's errors have no common base class
            raise half_message_not_stored(attempt, error) from error
        decision = self._execute(message.with_properties({UNIQUE_KEY: transaction_id}), attempt)
        self._decide(transaction, transaction_id, decision)

    def why_unready(self) -> str | None:
        """Returns the reason why the broker cannot store half messages of orders now, in one line; None if it has a route."""
        return "it is not started" if self._route is None else self._route.why_missing(order_created.TOPIC)

    def refusing_brokers(self) -> list[str]:
        """Returns an empty list, because the API of RocketMQ 5 has no request for this."""
        return []

    def count_discarded(self) -> int | None:
        """Returns None, because the API of RocketMQ 5 has no request for this. `rocketmq-admin discarded` shows the number."""
        return None

    def _running(self) -> Any:
        if self._producer is None:
            raise NotRunning("the producer is not started")
        return self._producer

    def _execute(self, half: Message, attempt: Attempt) -> LocalTransactionState:
        try:
            decision = self._listeners[half.topic].execute_local_transaction(half, attempt)
        except Exception:
            logger.warning(
                "the listener failed on transaction %s: the broker will check back", half.transaction_id, exc_info=True
            )
            return _UNKNOWN
        assert isinstance(decision, LocalTransactionState)
        return decision

    def _decide(self, transaction: Any, transaction_id: str, decision: LocalTransactionState) -> None:
        """Sends COMMIT or ROLLBACK to the broker. UNKNOWN is not sent, because the broker checks back anyway."""
        if decision is _UNKNOWN:
            return
        try:
            self._network.decision_leaves(transaction_id)
            transaction.commit() if decision is LocalTransactionState.COMMIT_MESSAGE else transaction.rollback()
        except Exception as error:
            logger.warning(
                "%s of transaction %s did not reach the broker: %s; the broker will check back",
                decision.name,
                transaction_id,
                error,
            )


class TransactionChecks:
    """Answers check-backs, as the TransactionChecker of Apache's client, which calls it in a separate thread."""

    def __init__(self, listeners: Mapping[str, TransactionListener], network: FailingNetwork) -> None:
        """`listeners` has the transaction listener of each topic.

        `network` drops check-backs and their answers at armed failpoints.
        """
        self._listeners = listeners
        self._network = network
        resolutions = apache_client().TransactionResolution
        self._resolutions = {
            LocalTransactionState.COMMIT_MESSAGE: resolutions.COMMIT,
            LocalTransactionState.ROLLBACK_MESSAGE: resolutions.ROLLBACK,
            _UNKNOWN: resolutions.TRANSACTION_RESOLUTION_UNSPECIFIED,
        }

    def check(self, half: Any) -> int:
        """Returns the listener's decision as a value of Apache's client.

        If the listener raises an error, the client sends no answer, and the broker checks back again.
        """
        message = of_apache(half)
        try:
            self._network.check_back_arrives(message.body, message.message_id)
            answer = self._listeners[message.topic].check_local_transaction(message)
            self._network.decision_leaves(message.message_id)
        except Exception as error:
            logger.warning("the check-back of transaction %s is not answered: %r", message.message_id, error)
            raise
        assert isinstance(answer, LocalTransactionState)
        return int(self._resolutions[answer])
