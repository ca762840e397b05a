"""Tests the requests of operators to a push consumer, as frames from its broker."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, MessageExt
from rocketmq_broker.client.listeners import MessageListener
from rocketmq_broker.client.push.consumer_settings import ConsumerSettings
from rocketmq_broker.client.push.listener_runners import ListenerRunner
from rocketmq_broker.client.push.operators.consumer_statistics import ConsumerStatistics
from rocketmq_broker.client.push.operators.direct_consumption import DirectConsumption
from rocketmq_broker.client.push.operators.operator_requests import OperatorRequests
from rocketmq_broker.client.push.operators.running_info import ConsumerState
from rocketmq_broker.protocol.bodies.group import GetConsumerStatusBody
from rocketmq_broker.protocol.bodies.running_info import CMResult, ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.group import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.world import World
from tests.stored_records import encoded


class AtOnce:
    """A runner that calls the listener immediately and passes its result on."""

    def submit(self, call: Callable[[], Any], on_done: Callable[[Any, BaseException | None], None]) -> None:
        try:
            answer = call()
        except Exception as error:
            on_done(None, error)
        else:
            on_done(answer, None)


class Broker:
    """A broker that sends requests to the consumer and keeps the responses."""

    is_open = True

    def __init__(self, listener: MessageListener) -> None:
        self.answers: list[RemotingCommand] = []
        state = ConsumerState(
            group="credits",
            name_servers="127.0.0.1:9876",
            settings=ConsumerSettings(consume_timestamp_ms=0),
            subscriptions={},
            process_queues=dict,
            statistics=ConsumerStatistics(lambda: 0.0),
            locks=None,
            is_orderly=False,
            world=World(),
            started_ms=0,
        )
        direct = DirectConsumption(listener, cast(ListenerRunner, AtOnce()), World(), is_orderly=False)
        self._handlers = OperatorRequests(state, direct).handlers

    def send(self, frame: bytes) -> None:
        self.answers += FrameDecoder().feed(frame)

    def ask(self, code: RequestCode, header: CommandHeader, body: bytes = b"") -> RemotingCommand | None:
        """Sends a request. Returns the response, or None if there is none."""
        (command,) = FrameDecoder().feed(encode_request(code, header, body, opaque=9))
        frame = self._handlers[code](cast(Connection, self), command)
        if isinstance(frame, bytes):
            self.send(frame)
        return self.answers[-1] if self.answers else None


def never(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
    raise AssertionError("the listener must not be called")


def stored(topic: str = "orders", **named: str) -> bytes:
    return encoded(topic, b"paid", named, queue_id=3, queue_offset=7, reconsume_times=1)


def consume(listener: MessageListener, body: bytes | None = None, *, group: str = "credits") -> ConsumeMessageDirectlyResult:
    header = ConsumeMessageDirectlyResultRequestHeader(
        consumer_group=group, client_id="client-1", msg_id="id", broker_name="broker-a"
    )
    answer = Broker(listener).ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header, stored() if body is None else body)
    assert answer is not None
    assert (answer.code, answer.opaque) == (ResponseCode.SUCCESS, 9)
    return ConsumeMessageDirectlyResult.decode(answer.body)


def test_the_listener_gets_the_one_message_and_its_answer_goes_back() -> None:
    got: list[tuple[list[MessageExt], ConsumeContext]] = []

    def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        got.append((messages, context))
        return ConsumeStatus.CONSUME_SUCCESS

    result = consume(listen)
    ((message,), context) = got[0]
    assert (message.body, message.topic, context.message_queue.queue_id) == (b"paid", "orders", 3)
    assert (result.consume_result, result.remark, result.order) == (CMResult.CR_SUCCESS, None, False)


def test_a_message_of_a_retry_topic_has_its_first_topic() -> None:
    seen: list[str] = []

    def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        seen.append(messages[0].topic)
        return ConsumeStatus.CONSUME_SUCCESS

    consume(listen, stored("%RETRY%credits", RETRY_TOPIC="orders"))
    assert seen == ["orders"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(ConsumeStatus.RECONSUME_LATER, CMResult.CR_LATER), (None, CMResult.CR_RETURN_NULL), ("yes", CMResult.CR_RETURN_NULL)],
)
def test_what_the_listener_answers_is_told_in_rocketmqs_words(answer: Any, expected: CMResult) -> None:
    assert consume(lambda messages, context: answer).consume_result == expected


def test_what_the_listener_raises_is_told() -> None:
    def fail(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        raise LookupError("no such order")

    result = consume(fail)
    assert (result.consume_result, result.remark) == (CMResult.CR_THROW_EXCEPTION, "LookupError: no such order")


def test_a_message_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(RequestRefused, match="the message cannot be read"):
        consume(never, b"nothing")


def test_an_operator_who_has_gone_gets_no_answer() -> None:
    broker = Broker(lambda messages, context: ConsumeStatus.CONSUME_SUCCESS)
    broker.is_open = False
    header = ConsumeMessageDirectlyResultRequestHeader(consumer_group="credits", client_id=None, msg_id=None, broker_name=None)
    assert broker.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header, stored()) is None


def test_the_consumer_tells_of_itself() -> None:
    header = GetConsumerRunningInfoRequestHeader(consumer_group="credits", client_id="client-1")
    answer = Broker(never).ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    assert answer is not None
    info = ConsumerRunningInfo.decode(answer.body)
    assert info.properties["consumerGroup"] == "credits"
    assert info.properties["PROP_NAMESERVER_ADDR"] == "127.0.0.1:9876"
    assert info.jstack is None


def test_it_tells_what_its_threads_do_only_if_it_is_asked_for_that() -> None:
    header = GetConsumerRunningInfoRequestHeader(consumer_group="credits", client_id="client-1", jstack_enable=True)
    answer = Broker(never).ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    assert answer is not None
    assert "MainThread" in (ConsumerRunningInfo.decode(answer.body).jstack or "")


def test_a_consumer_without_queues_has_no_offsets() -> None:
    header = GetConsumerStatusRequestHeader(topic="orders", group="credits")
    answer = Broker(never).ask(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header)
    assert answer is not None
    assert GetConsumerStatusBody.decode(answer.body).message_queue_table == {}


def test_a_consumer_of_another_group_is_not_meant() -> None:
    headers: dict[RequestCode, CommandHeader] = {
        RequestCode.GET_CONSUMER_RUNNING_INFO: GetConsumerRunningInfoRequestHeader(consumer_group="mails", client_id="c"),
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: GetConsumerStatusRequestHeader(topic="orders", group="mails"),
    }
    for code, header in headers.items():
        with pytest.raises(RequestRefused, match="The Consumer Group <mails> not exist in this consumer"):
            Broker(never).ask(code, header)
    with pytest.raises(RequestRefused, match="<mails>"):
        consume(never, group="mails")
