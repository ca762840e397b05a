"""Sends single requests to a broker, or to Apache's and ours, for a comparison, and reads the commit log from the disk."""

import asyncio
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, decode_record, records_of
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetRequestHeader, UpdateConsumerOffsetRequestHeader
from rocketmq_broker.protocol.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader
from rocketmq_broker.protocol.headers.transaction import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
    ResumeCheckHalfMessageRequestHeader,
)
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Dispatcher
from tests.foreign.apache.cluster import apache_rocketmq

CLIENT_ID = "127.0.0.1@records"
PRODUCERS = "producers"
ROLLBACK, COMMIT, UNKNOWN = 12, 8, 0
"""What END_TRANSACTION may say."""
LONG_AGO_MS = 3_600_000
"""Apache counts a transaction's age from the born timestamp: one of this age is checked at the next tick."""
PATIENCE_S = 120
FIRST_SEGMENT = f"{0:020}"
MORE_THAN_IS_SENT = 8 << 20
_BATCHED = struct.Struct(">iiiii")
_LENGTH = struct.Struct(">h")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Check:
    """A check-back that the broker sent, with the header and the record."""

    header: CheckTransactionStateRequestHeader
    record: Record


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as the requester received it."""

    header: ReplyMessageRequestHeader
    body: bytes


class Stage:
    """A broker, its store, and its requests to the client. `way` is the name of a path, and the key of the messages on it."""

    def __init__(self, address: str, store: Path) -> None:
        self.born_ms: dict[str, int] = {}
        """By way, what was sent as the born timestamp."""
        self.checks: dict[str, list[Check]] = {}
        self.replies: dict[str, list[Reply]] = {}
        self._address = address
        self._store = store
        handlers = Dispatcher()
        handlers.add(
            {RequestCode.CHECK_TRANSACTION_STATE: self._checked, RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._replied}
        )
        self._client = RemotingClient(handlers)

    async def ask(self, code: RequestCode, header: CommandHeader | None, body: bytes = b"") -> RemotingCommand:
        """Sends a request, whose response must be SUCCESS, and returns the response."""
        answer = await self._client.invoke(self._address, code, header, body, timeout_ms=PATIENCE_S * 1000)
        assert answer.code == ResponseCode.SUCCESS, f"{code.name}: {answer.code} {answer.remark}"
        return answer

    async def be_known(self) -> None:
        """Sends a heartbeat of the producer that receives check-backs and replies."""
        data = HeartbeatData(client_id=CLIENT_ID, producer_data_set=[ProducerData(group_name=PRODUCERS)])
        await self.ask(RequestCode.HEART_BEAT, None, data.encode())

    async def send(
        self,
        way: str,
        properties: Mapping[str, str] | None = None,
        *,
        code: RequestCode = RequestCode.SEND_MESSAGE_V2,
        body: bytes | None = None,
        age_ms: int = 0,
        **changes: object,
    ) -> None:
        """Sends a message to queue 1. Its key, topic and body are `way`. `changes` are header fields."""
        kind = (
            SendMessageRequestHeader
            if code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)
            else SendMessageRequestHeaderV2
        )
        self.born_ms[way] = time.time_ns() // 1_000_000 - age_ms
        fields: dict[str, object] = {
            "producer_group": PRODUCERS,
            "topic": way,
            "default_topic": "TBW102",
            "default_topic_queue_nums": 4,
            "queue_id": 1,
            "sys_flag": 0,
            "born_timestamp": self.born_ms[way],
            "flag": 5,
            "properties": encoded(way, properties).decode(),
        }
        await self.ask(code, kind(**{**fields, **changes}), way.encode() if body is None else body)

    async def send_back(self, record: Record, *, delay_level: int, group: str) -> None:
        """Sends a consumed message back, as a group does after a failure."""
        await self._shown(record)
        consumed = UpdateConsumerOffsetRequestHeader(
            consumer_group=group, topic=record.topic.decode(), queue_id=record.queue_id, commit_offset=record.queue_offset
        )
        await self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, consumed)
        header = ConsumerSendMsgBackRequestHeader(offset=record.commit_log_offset, group=group, delay_level=delay_level)
        await self.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)

    async def end(self, half: Record, decision: int) -> None:
        """Sends a decision for a half message."""
        await self._end(half.commit_log_offset, half.queue_offset, decision, is_answer=False)

    async def answer(self, check: Check, decision: int) -> None:
        """Sends a decision in response to a check-back."""
        await self._end(check.header.commit_log_offset, check.header.tran_state_table_offset, decision, is_answer=True)

    async def resume(self, discarded: Record) -> None:
        """Requests another check of a discarded message."""
        await self._shown(discarded)
        header = ResumeCheckHalfMessageRequestHeader(msg_id=offset_message_id(discarded.store_host, discarded.commit_log_offset))
        await self.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, header)

    async def _shown(self, record: Record) -> None:
        """Waits until consumers can read the message. The message is in the commit log slightly earlier."""
        header = GetMaxOffsetRequestHeader(topic=record.topic.decode(), queue_id=record.queue_id)
        async with asyncio.timeout(PATIENCE_S):
            while int((await self.ask(RequestCode.GET_MAX_OFFSET, header)).ext_fields()["offset"]) <= record.queue_offset:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def create_topic(self, topic: str, topic_filter_type: str) -> None:
        """Creates a topic with four queues."""
        header = CreateTopicRequestHeader(topic, "TBW102", 4, 4, 6, topic_filter_type)
        await self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def record(self, way: str, topic: str, number: int = 0) -> Record:
        """Waits for message `number` of a path in a topic, and returns the record."""

        def find() -> Record | None:
            found = [record for record in self.records() if record.topic == topic.encode() and way_of(record) == way]
            return found[number] if len(found) > number else None

        return await _until(f"{way}: message {number} in {topic}", find)

    async def resumed(self, way: str) -> Record:
        """Waits for the half message made from the path's discarded message, and returns the record."""

        def find() -> Record | None:
            return next((record for record in self.records() if way_of(record) == way and is_resumed(record)), None)

        return await _until(f"{way}: resumed half message", find)

    async def check(self, way: str, number: int) -> Check:
        """Waits for check-back `number` of a path, and returns it."""
        return await _until(f"{way}: check-back {number}", lambda: next(iter(self.checks.get(way, [])[number:]), None))

    def records(self) -> list[Record]:
        """Returns all records of the commit log, oldest first."""
        with (self._store / "commitlog" / FIRST_SEGMENT).open("rb") as segment:
            return list(records_of(segment.read(MORE_THAN_IS_SENT)))

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()

    async def _end(self, commit_log_offset: int, queue_offset: int, decision: int, *, is_answer: bool) -> None:
        header = EndTransactionRequestHeader(
            producer_group=PRODUCERS,
            tran_state_table_offset=queue_offset,
            commit_log_offset=commit_log_offset,
            commit_or_rollback=decision,
            from_transaction_check=is_answer,
            msg_id="",
        )
        await self._client.invoke_oneway(self._address, RequestCode.END_TRANSACTION, header)
        if decision != UNKNOWN:
            await _until(f"op message of half message {queue_offset}", lambda: queue_offset in decided(self.records()) or None)

    def _checked(self, connection: Connection, request: RemotingCommand) -> None:
        record = decode_record(request.body)
        header = request.decode_header(CheckTransactionStateRequestHeader)
        self.checks.setdefault(way_of(record), []).append(Check(header, record))

    def _replied(self, connection: Connection, request: RemotingCommand) -> bytes:
        header = request.decode_header(ReplyMessageRequestHeader)
        way = props.find(header.properties.encode(), props.KEYS) or ""
        self.replies.setdefault(way, []).append(Reply(header, request.body))
        return encode_response(request, ResponseCode.SUCCESS)


@contextmanager
def both_stages(
    home: Path, *, transaction_timeout_ms: int, check_interval_ms: int, check_max: int
) -> Iterator[tuple[Stage, Stage]]:
    """Runs Apache's broker and this project's broker with the same check-backs. Yields a stage of each, Apache's first."""
    namesrv_port, port, our_namesrv_port, our_port = free_ports(4)
    apache_settings = {
        "NAMESRV_PORT": str(namesrv_port),
        "BROKER_PORT": str(port),
        "TRANSACTION_TIMEOUT_MS": str(transaction_timeout_ms),
        "CHECK_INTERVAL_MS": str(check_interval_ms),
        "CHECK_MAX": str(check_max),
        "PROPERTIES": "brokerFastFailureEnable=false",
    }
    our_settings = {
        "namesrvListenPort": str(our_namesrv_port),
        "listenPort": str(our_port),
        "transactionTimeOut": str(transaction_timeout_ms),
        "transactionCheckInterval": str(check_interval_ms),
        "transactionCheckMax": str(check_max),
    }
    with apache_rocketmq(home / "apache", settings=apache_settings), Processes(home / "logs") as processes:
        add_broker(processes, home / "ours", our_settings).start()
        yield Stage(f"127.0.0.1:{port}", home / "apache/store"), Stage(f"127.0.0.1:{our_port}", home / "ours/store")


def encoded(way: str, properties: Mapping[str, str] | None = None) -> bytes:
    """Returns the properties of a message as Apache's client sends them. An empty value removes a property."""
    usual = {props.KEYS: way, props.UNIQUE_KEY: f"ID-{way}", props.WAIT_STORE_MSG_OK: "true"}
    return props.encode({name: value for name, value in {**usual, **(properties or {})}.items() if value})


def batched(flag: int, body: bytes, properties: bytes) -> bytes:
    """Returns the encoding of one message of a batch."""
    size = _BATCHED.size + len(body) + _LENGTH.size + len(properties)
    return _BATCHED.pack(size, 0, 0, flag, len(body)) + body + _LENGTH.pack(len(properties)) + properties


def way_of(record: Record) -> str:
    """Returns the name of the message's path, or an empty string for an op message."""
    return record.get_property(props.KEYS) or ""


def is_resumed(record: Record) -> bool:
    """Returns True for a half message made from a discarded message. The check counter of such a half message is 0."""
    return record.topic == topics.HALF_TOPIC.encode() and record.get_property(props.TRANSACTION_CHECK_TIMES) == "0"


def decided(records: Iterable[Record]) -> set[int]:
    """Returns the queue offsets of the half messages that op messages contain."""
    return {int(record.body) for record in records if record.topic == topics.OP_HALF_TOPIC.encode()}


async def _until(what: str, find: Callable[[], _Found | None]) -> _Found:
    deadline_s = time.monotonic() + PATIENCE_S
    while (found := find()) is None:
        assert time.monotonic() < deadline_s, f"{what} did not come within {PATIENCE_S} s"
        await asyncio.sleep(0.1)
    return found
