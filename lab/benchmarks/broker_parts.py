"""Assembles the broker's parts as in `rocketmq_broker.app`, with one connection that has no socket."""

import asyncio
from pathlib import Path

from lab.benchmarks.recorded_frames import QUEUES
from rocketmq_broker.app.opened_store import open_store
from rocketmq_broker.app.pace import Pace
from rocketmq_broker.app.serving import build_serving
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.connections.turn import Turn
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.schedule.broker_clock import BrokerClock
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.store import FlushDiskType
from rocketmq_broker.world import current_world

LOOPBACK = "127.0.0.1"
_NEVER_OVER_S = 3600.0
"""The time limit of a turn of the event loop in seconds. It is never reached, so each exchange gets all of its answers."""
_NO_NAME_SERVER = "127.0.0.1:1"


class BrokerParts:
    """A broker without sockets. `exchange` passes requests to it."""

    def __init__(self, home: Path, flush_disk_type: FlushDiskType) -> None:
        """Creates a broker that is not started. `home` is the store directory."""
        self._home = home
        self._flush_disk_type = flush_disk_type
        self._transport = _FakeTransport()

    async def start(self) -> None:
        """Opens the store, and connects a client without a socket."""
        settings = BrokerSettings(store_path_root_dir=str(self._home), flush_disk_type=self._flush_disk_type.value)
        identity = BrokerIdentity(cluster="DefaultCluster", name="broker-a", broker_id=0, host=LOOPBACK, port=10911)
        world = current_world()
        clock = BrokerClock(world.wall_ns, world.steady_ns)
        self._store = open_store(settings, identity, clock())
        self._group_commit = GroupCommit(self._store.messages, self._flush_disk_type)
        await self._group_commit.start()
        dispatcher = Dispatcher()
        self._client = RemotingClient()
        build_serving(
            settings,
            identity,
            self._store,
            self._group_commit,
            dispatcher,
            Tasks(),
            self._client,
            [_NO_NAME_SERVER],
            clock,
            world.random,
            Pace(),
        )
        self._connection = Connection(dispatcher, turn=Turn(asyncio.get_running_loop(), world.steady_ns, _NEVER_OVER_S))
        self._connection.connection_made(self._transport)

    async def stop(self) -> None:
        """Flushes and closes the store."""
        self._connection.connection_lost(None)
        await self._group_commit.stop()
        self._store.messages.close()
        await self._client.close()

    async def exchange(self, data: bytes, answers: int) -> bytes:
        """Passes the bytes of one read to the broker. Returns the broker's output once it contains `answers` responses."""
        written = self._transport.written
        self._connection.data_received(data)
        await asyncio.sleep(0)
        if answers and not written:
            self._transport.has_written.clear()
            await self._transport.has_written.wait()
        answered = b"".join(written)
        written.clear()
        return answered

    def committed(self, topic: str) -> int:
        """Returns the number of messages visible to consumers."""
        return sum(self._store.messages.max_offset(topic.encode(), queue_id) for queue_id in range(QUEUES))


class _FakeTransport(asyncio.Transport):
    """A transport that collects the written bytes instead of sending them."""

    def __init__(self) -> None:
        super().__init__({"peername": (LOOPBACK, 5555)})
        self.written: list[bytes] = []
        self.has_written = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        self.has_written.set()

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass
