"""The answers to check-backs, given by the listener (RocketMQ's DefaultMQProducerImpl.checkTransactionState)."""

from __future__ import annotations

import logging
from functools import partial
from typing import NamedTuple

from rocketmq_broker.client.producer.send_result import LocalTransactionState
from rocketmq_broker.client.push.listener_runners import ListenerNotRun, Runners
from rocketmq_broker.client.transaction.topic_listeners import TopicListeners
from rocketmq_broker.client.transaction.transaction_decision import decision_and_failure, end_after_check
from rocketmq_broker.message import MessageError, MessageExt, properties
from rocketmq_broker.message.record import decode_record, to_message
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers import CheckTransactionStateRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.errors import RemotingError

logger = logging.getLogger(__name__)

_MAX_TOPICS_NAMED = 1000


class _CheckQuestion(NamedTuple):
    connection: Connection
    check: CheckTransactionStateRequestHeader
    message: MessageExt


class CheckAnswers:
    """A handler that asks the topic's listener, a few checks at a time, and answers on the connection of the check.

    Checks beyond a bound are dropped: the broker asks again. A second check of a transaction replaces the first one while the
    listener looks: a restarted broker gets the answer, and the listener is asked once.
    """

    def __init__(self, group: str, listeners: TopicListeners, runners: Runners, max_waiting: int) -> None:
        """At most `max_waiting` checks wait or are in the listener's hands."""
        self._group = group
        self._listeners = listeners
        self._runners = runners
        self._topics_unknown: set[str] = set()
        self._max_waiting = max_waiting
        self._looked_at: dict[tuple[str, int], _CheckQuestion] = {}

    def on_check(self, connection: Connection, request: RemotingCommand) -> None:
        """Handles a broker's check."""
        check = request.decode_header(CheckTransactionStateRequestHeader)
        try:
            message = to_message(decode_record(request.body), check.broker_name or "")
        except MessageError as error:
            logger.warning("a check-back from %s without a readable half message: %s", connection.peer, error)
            return
        asked_group = message.properties.get(properties.PRODUCER_GROUP)
        if asked_group != self._group:
            logger.warning("a check-back from %s for group %s; this is %s", connection.peer, asked_group, self._group)
            return
        listener = self._listeners.of(message.topic)
        if listener is None:
            self._say_unknown(_CheckQuestion(connection, check, message))
            return
        key = (check.broker_name or connection.peer, check.commit_log_offset)
        question = _CheckQuestion(connection, check, message)
        if key in self._looked_at:
            self._looked_at[key] = question
            return
        if len(self._looked_at) >= self._max_waiting:
            logger.warning(
                "too many check-backs wait: that of transaction %s is left to the broker's next", message.transaction_id
            )
            return
        self._looked_at[key] = question
        method = listener.check_local_transaction
        self._runners.of(method).submit(partial(method, message), partial(self._answer, key))

    def _answer(self, key: tuple[str, int], answer: LocalTransactionState | None, error: BaseException | None) -> None:
        question = self._looked_at.pop(key)
        if not isinstance(error, ListenerNotRun):
            self._tell(question, *decision_and_failure(answer, error, question.message.transaction_id))

    def _say_unknown(self, question: _CheckQuestion) -> None:
        """Answers UNKNOWN for a topic without a listener. Another program of the group may have one: the broker asks again."""
        topic = question.message.topic
        if topic not in self._topics_unknown and len(self._topics_unknown) < _MAX_TOPICS_NAMED:
            self._topics_unknown.add(topic)
            logger.warning(
                "a check-back from %s for topic %s, for which producer %s has no transaction listener; it has: %s. "
                "It answers UNKNOWN, now and from now on",
                question.connection.peer, topic, self._group, self._listeners,
            )  # fmt: skip
        self._tell(question, LocalTransactionState.UNKNOWN)

    def _tell(self, question: _CheckQuestion, state: LocalTransactionState, failure: str | None = None) -> None:
        connection, check, message = question
        header = end_after_check(self._group, check, message, state)
        try:
            connection.invoke_oneway(RequestCode.END_TRANSACTION, header, remark=failure)
        except RemotingError as failure:
            logger.info("the answer for transaction %s did not leave: %s; the broker asks again", message.transaction_id, failure)
