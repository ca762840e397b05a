"""Tests broker and name server with fuzzed frames, in process and over sockets, while an honest client uses them."""

import asyncio
import random
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from rocketmq_broker.app import Broker
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.pull import PullMessageRequestHeader
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_broker.remoting.client import RemotingClient
from tests.lab.fuzz.frames import FrameMaker, code_name
from tests.lab.fuzz.transport import connected
from tests.lab.fuzz.watch import Watch

HONEST_EVERY = 400
SOCKET_SHARE = 0.1
HONEST_TOPIC = "honest"
_PATIENCE_MS = 30_000
_SMALL = {
    "max_hash_slot_num": 1000,
    "max_index_num": 4000,
    "maped_file_size_commit_log": 1 << 22,
    "maped_file_size_consume_queue": 20_000,
}


def _header(topic: str, properties: str, sys_flag: int = 0) -> SendMessageRequestHeaderV2:
    return SendMessageRequestHeaderV2(
        producer_group="honest", topic=topic, default_topic="TBW102", default_topic_queue_nums=4, queue_id=0, sys_flag=sys_flag,
        born_timestamp=1, flag=0, properties=properties,
    )  # fmt: skip


class Honest:
    """A client that sends and reads. Every message whose storage was confirmed must be in the store at the end."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = RemotingClient()
        self.sent: list[bytes] = []

    async def send(self) -> None:
        """Sends one message, which must be stored."""
        body = b"honest-%d" % len(self.sent)
        answer = await self._client.invoke(
            self._address, RequestCode.SEND_MESSAGE_V2, _header(HONEST_TOPIC, ""), body, timeout_ms=_PATIENCE_MS
        )
        assert answer.code == ResponseCode.SUCCESS, (answer.code, answer.remark)
        self.sent.append(body)

    async def prepare(self, number: int) -> tuple[str, int, int]:
        """Sends a half message, so that the fuzzer has the ids of an existing transaction."""
        properties = f"TRAN_MSG\x01true\x02PGROUP\x01honest\x02UNIQ_KEY\x01T{number}\x02"
        answer = await self._client.invoke(
            self._address, RequestCode.SEND_MESSAGE_V2, _header("half", properties, 4), b"half", timeout_ms=_PATIENCE_MS
        )
        if answer.code != ResponseCode.SUCCESS:
            return f"T{number}", 0, 0
        header = answer.decode_header(SendMessageResponseHeader)
        return f"T{number}", header.queue_offset, int(header.msg_id[16:], 16)

    async def commit(self, transaction: tuple[str, int, int]) -> None:
        """Commits a transaction. A fuzzed request may have decided it before."""
        transaction_id, half_offset, commit_log_offset = transaction
        header = EndTransactionRequestHeader(
            producer_group="honest", tran_state_table_offset=half_offset, commit_log_offset=commit_log_offset,
            commit_or_rollback=8, from_transaction_check=False, msg_id=transaction_id, transaction_id=transaction_id,
        )  # fmt: skip
        await self._client.invoke_oneway(self._address, RequestCode.END_TRANSACTION, header)

    async def read_back(self) -> None:
        """Reads all messages, and checks that no sent message is missing."""
        found: set[bytes] = set()
        offset = 0
        while True:
            header = PullMessageRequestHeader(
                consumer_group="TOOLS_CONSUMER", topic=HONEST_TOPIC, queue_id=0, queue_offset=offset, max_msg_nums=32, sys_flag=4,
                commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
            )  # fmt: skip
            answer = await self._client.invoke(self._address, RequestCode.PULL_MESSAGE, header, timeout_ms=_PATIENCE_MS)
            if answer.code != ResponseCode.SUCCESS:
                break
            found |= {body for body in self.sent[offset : offset + 40] if body in answer.body}
            offset = int(answer.ext_fields()["nextBeginOffset"])
        missing = [body for body in self.sent if body not in found]
        assert not missing, f"{len(missing)} of {len(self.sent)} messages that were stored are gone: {missing[:3]}"

    async def close(self) -> None:
        """Closes the client's connection."""
        await self._client.close()


@asynccontextmanager
async def running_broker(root: Path, **settings: Any) -> AsyncIterator[Broker]:
    """Runs a broker and its name server in this process, on free ports. Yields the broker."""
    given = {"store_path_root_dir": str(root), "listen_port": 0, "namesrv_listen_port": 0, **_SMALL, **settings}
    broker = Broker(BrokerSettings(**given))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


async def fuzz_servers(watch: Watch, chance: random.Random, inputs: int) -> None:
    """Runs one round: `inputs` frames on one store, alternately for broker and name server. Then reopens and reads the store."""
    root = Path(tempfile.mkdtemp(prefix="fuzz-"))
    settings = {
        "flush_disk_type": chance.choice(("SYNC_FLUSH", "ASYNC_FLUSH")),
        "enable_property_filter": chance.random() < 0.5,
        "transaction_check_interval": 500,
        "transaction_time_out": 100,
        "transaction_check_max": 2,
    }
    try:
        async with running_broker(root, **settings) as broker:
            sent = await _attack(watch, chance, broker, inputs)
        async with running_broker(root, **settings) as broker:
            honest = Honest(broker.identity.address)
            honest.sent = sent
            with watch.frame("store", "recovery", b""):
                await honest.read_back()
            await honest.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _attack(watch: Watch, chance: random.Random, broker: Broker, inputs: int) -> list[bytes]:
    honest, maker = Honest(broker.identity.address), FrameMaker(chance)
    assert broker._name_server is not None
    name_server = broker._name_server._server
    lines = [
        _Line(watch, chance, "broker", broker._dispatcher, set(), broker.identity.port),
        _Line(watch, chance, "name server", name_server._handler, name_server.connections, name_server.port),
    ]
    for number in range(10):
        maker.values.transactions.append(await honest.prepare(number))
    for number in range(inputs):
        line = lines[0] if number % 4 else lines[1]
        code, frame = maker.request(line.codes)
        await line.send(code, frame)
        if number % HONEST_EVERY == 0:
            with watch.frame("honest client", "SEND_MESSAGE", b""):
                await honest.send()
            maker.values.transactions.append(await honest.prepare(number))
            await honest.commit(maker.values.transactions.pop(0))
    for line in lines:
        line.close()
    with watch.frame("honest client", "PULL_MESSAGE", b""):
        await honest.read_back()
    await honest.close()
    return honest.sent


class _Line:
    """Connections to one server. Most frames are passed to the connection object, and some are sent over a socket in pieces."""

    def __init__(self, watch: Watch, chance: random.Random, name: str, handler: Any, connections: Any, port: int) -> None:
        self._watch, self._chance, self._name = watch, chance, name
        self._handler, self._connections, self._port = handler, connections, port
        self.codes = list(handler._handlers)
        self._open: list[Any] = []

    async def send(self, code: int, frame: bytes) -> None:
        """Sends one frame to the server."""
        if self._chance.random() < SOCKET_SHARE:
            await self._over_a_socket(code, frame)
            return
        if not self._open or self._chance.random() < 0.02:
            self._open.append(connected(self._handler, self._connections, self._chance.randrange(1, 60_000)))
        if len(self._open) > 8:
            self._open.pop(0)[1].close()
        connection, transport = self._chance.choice(self._open)
        with self._watch.frame(self._name, code_name(code), frame):
            connection.data_received(frame)
        await asyncio.sleep(0)
        self._check_answers(transport)
        if connection._decoder.buffered_length and self._chance.random() < 0.7:
            transport.close()  # a frame that was cut would swallow those that follow
        if transport.is_closing():
            self._open.remove((connection, transport))

    def close(self) -> None:
        """Closes all connections."""
        for _, transport in self._open:
            transport.close()

    def _check_answers(self, transport: Any) -> None:
        if b"internal error" in transport.written:
            self._watch.found("an internal error was answered", self._watch.current)
        if transport.written and len(transport.written) < 1 << 20:
            for command in FrameDecoder().feed(bytes(transport.written)):
                self._watch.answers[f"{self._name} {'request' if not command.is_response else command.code}"] += 1
        transport.written.clear()

    async def _over_a_socket(self, code: int, frame: bytes) -> None:
        self._watch.inputs[f"{self._name} by socket"] += 1
        self._watch.current = f"{self._name} by socket {code_name(code)} {frame[:600].hex()}"
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
            cut = self._chance.randrange(len(frame) + 1)
            for part in (frame[:cut], frame[cut:]):
                writer.write(part)
                await asyncio.sleep(0)
            if self._chance.random() < 0.5:
                writer.transport.abort()
            else:
                writer.close()
