"""Responds to check-backs with the listener's results (RocketMQ's DefaultMQProducerImpl.checkTransactionState)."""

import logging
from functools import partial
from typing import NamedTuple

from rocketmq_broker.client.instance.namespace import NO_NAMESPACE, Namespace
from rocketmq_broker.client.producer.send_result import LocalTransactionState
from rocketmq_broker.client.push.listener_runners import ListenerNotRun, Runners
from rocketmq_broker.client.transaction.topic_listeners import TopicListeners
from rocketmq_broker.client.transaction.transaction_decision import decision_and_failure, end_after_check
from rocketmq_broker.message import MessageError, MessageExt, properties
from rocketmq_broker.message.record import decode_record, to_message
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.errors import RemotingError

logger = logging.getLogger(__name__)

_MAX_TOPICS_NAMED = 1000


class _CheckQuestion(NamedTuple):
    connection: Connection
    check: CheckTransactionStateRequestHeader
    message: MessageExt


class CheckAnswers:
    """Calls the topic's listener for a limited number of check-backs at a time.

    The response is sent on the connection of the check-back. Check-backs beyond the limit are dropped, because the
    broker repeats them. If a second check-back of a transaction arrives while the listener runs, it replaces the first
    one: the listener is called only once, and a restarted broker receives the response.
    """

    def __init__(
        self, group: str, listeners: TopicListeners, runners: Runners, max_waiting: int, namespace: Namespace = NO_NAMESPACE
    ) -> None:
        """Creates the handler of check-backs for the producer group `group`.

        At most `max_waiting` check-backs wait or run at a time. `namespace` is removed from the topics of half messages.
        """
        self._namespace = namespace
        self._group = group
        self._listeners = listeners
        self._runners = runners
        self._topics_unknown: set[str] = set()
        self._max_waiting = max_waiting
        self._in_progress: dict[tuple[str, int], _CheckQuestion] = {}

    def on_check(self, connection: Connection, request: RemotingCommand) -> None:
        """Handles a broker's check-back."""
        check = request.decode_header(CheckTransactionStateRequestHeader)
        try:
            message = self._namespace.unwrap_message(to_message(decode_record(request.body), check.broker_name or ""))
        except MessageError as error:
            logger.warning("ignored a check-back from %s with an unreadable half message: %s", connection.peer, error)
            return
        asked_group = message.properties.get(properties.PRODUCER_GROUP)
        if asked_group != self._group:
            logger.warning(
                "ignored a check-back from %s for group %s: this producer belongs to group %s",
                connection.peer,
                asked_group,
                self._group,
            )
            return
        listener = self._listeners.of(message.topic)
        if listener is None:
            self._answer_unknown(_CheckQuestion(connection, check, message))
            return
        key = (check.broker_name or connection.peer, check.commit_log_offset)
        question = _CheckQuestion(connection, check, message)
        if key in self._in_progress:
            self._in_progress[key] = question
            return
        if len(self._in_progress) >= self._max_waiting:
            logger.warning(
                "too many check-backs are waiting: dropped that of transaction %s; the broker will repeat it",
                message.transaction_id,
            )
            return
        self._in_progress[key] = question
        method = listener.check_local_transaction
        self._runners.of(method).submit(partial(method, message), partial(self._answer, key))

    def _answer(self, key: tuple[str, int], answer: LocalTransactionState | None, error: BaseException | None) -> None:
        question = self._in_progress.pop(key)
        if not isinstance(error, ListenerNotRun):
            self._send(question, *decision_and_failure(answer, error, question.message.transaction_id))

    def _answer_unknown(self, question: _CheckQuestion) -> None:
        """Sends UNKNOWN for a topic without a listener. Another program of the group may decide at a later check-back."""
        topic = question.message.topic
        if topic not in self._topics_unknown and len(self._topics_unknown) < _MAX_TOPICS_NAMED:
            self._topics_unknown.add(topic)
            logger.warning(
                "check-backs from %s for topic %s are answered UNKNOWN: producer %s has transaction listeners only for: %s",
                question.connection.peer, topic, self._group, self._listeners,
            )  # fmt: skip
        self._send(question, LocalTransactionState.UNKNOWN)

    def _send(self, question: _CheckQuestion, state: LocalTransactionState, failure: str | None = None) -> None:
        connection, check, message = question
        header = end_after_check(self._group, check, message, state)
        try:
            connection.invoke_oneway(RequestCode.END_TRANSACTION, header, remark=failure)
        except RemotingError as failure:
            logger.info(
                "could not answer the check-back of transaction %s: %s; the broker will repeat it",
                message.transaction_id,
                failure,
            )
