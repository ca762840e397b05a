"""Simulates a broker, a producer and a reader. The broker's disk has faults that the seed determines."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rocketmq_broker.app import Broker
from rocketmq_broker.app.errors import StartError
from rocketmq_broker.client import LocalTransactionState, PullConsumer, TransactionProducer
from rocketmq_broker.client.errors import ClientError
from rocketmq_broker.config import load_settings
from rocketmq_broker.message import Message, MessageExt, MessageQueue
from rocketmq_broker.remoting.network import Listener
from rocketmq_broker.testing.memory_network import MemoryNetwork, NewProtocol
from rocketmq_broker.testing.rocketmq import PACE
from rocketmq_broker.testing.simulation.chance import stream
from rocketmq_broker.testing.simulation.disk import SimulatedDisk
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.loop import SimulatedLoop
from rocketmq_broker.testing.simulation.process import Killed, SimulatedProcess, WallClock

NAME_SERVER: Final = "127.0.0.1:9876"
TOPICS: Final = ("orders", "credits")
SENDERS: Final = 4
CUSTOMERS: Final = 2
SETTLED_WITHIN_S: Final = 60.0
"""So long after the last fault each transaction is settled at the latest."""
STARTS_MS: Final = 1_767_225_600_000
SETTINGS: Final = {
    "storePathRootDir": "/store",
    "brokerIP1": "127.0.0.1",
    "bindAddress": "127.0.0.1",
    "listenPort": "10911",
    "namesrvListenPort": "9876",
    "tls.server.mode": "disabled",
    "mapedFileSizeCommitLog": str(64 << 10),
    "mapedFileSizeConsumeQueue": str(20 * 32),
    "maxHashSlotNum": "50",
    "maxIndexNum": "200",
    "defaultTopicQueueNums": "2",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "2000",
    "transactionCheckMax": "1000",
}

Place = tuple[str, int, int]
"""Topic, queue id, queue offset."""


class BrokenPromise(AssertionError):
    """Raised if the broker lost, changed or invented a message."""


class Decisions:
    """The outcomes of the transactions. Each outcome is fixed from the start, but is often returned only at a check-back."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.committed: set[str] = set()

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        if self._chance.random() < 0.3:
            return LocalTransactionState.UNKNOWN
        return self._outcome(message.body.decode())

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return self._outcome(message.body.decode())

    def _outcome(self, body: str) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE if body in self.committed else LocalTransactionState.ROLLBACK_MESSAGE


class _Ports(MemoryNetwork):
    """A network that can close the listeners of a crashed process."""

    def __init__(self) -> None:
        super().__init__(is_open=False)
        self.listening: list[Listener] = []

    async def bind(self, new_protocol: NewProtocol, host: str, port: int, backlog: int) -> Listener:
        self.listening.append(await super().bind(new_protocol, host, port, backlog))
        return self.listening[-1]

    def end(self) -> None:
        self.cut()
        while self.listening:
            self.listening.pop().stop()


class BrokerOnADisk:
    """A simulation of a broker with a faulty disk. `play` raises BrokenPromise if a message is lost, changed or invented."""

    def __init__(self, seed: int, *, lies: bool = False, **settings: str) -> None:
        """Creates the simulation. With `lies` the disk reports flushes of the commit log as done without flushing."""
        self.seed = seed
        self.loop = SimulatedLoop()
        self.history = History(self.loop.elapsed_ns)
        self.disk = SimulatedDisk("disk", self.history, stream(seed, "disk"))
        self.sent: set[str] = set()
        """The messages that may be shown."""
        self.halves: set[str] = set()
        """The half messages that were acknowledged and have to be shown in the end."""
        self.acknowledged: dict[Place, str] = {}
        self.fired: dict[str, int] = {}
        self.errors: list[str] = []
        self.starts = 0
        self._lies = lies
        self._settings = {**SETTINGS, **settings}
        self._clock = WallClock(self.loop, STARTS_MS)
        self._network = _Ports()
        self._chance = stream(seed, "faults")
        self._bodies = stream(seed, "bodies")
        self._decisions = Decisions(stream(seed, "decisions"))
        self._shown: dict[Place, str] = {}
        self._processes: list[SimulatedProcess] = []
        self._broker: SimulatedProcess | None = None
        self.loop.on_error = self._note_error

    def play(self, rounds: int) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._play(rounds))
        finally:
            self.loop.run_until_complete(self._bury())
            for process in self._processes:
                process.clear()
            asyncio.set_event_loop(None)

    async def _bury(self) -> None:
        """Ends all waiting tasks while the loop is running. If they ended later, they would log that the loop is closed."""
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task._log_destroy_pending = False
                with suppress(BaseException):
                    task.get_coro().close()

    def _note_error(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None and not isinstance(error, Killed):
            self.errors.append(f"{context['message']}: {error!r}")

    async def _play(self, rounds: int) -> None:
        await self._start()
        clients = self._process("customers")
        producer, reader = clients.call(self._clients)
        await clients.run(producer.start())
        await clients.run(reader.start())
        for topic in TOPICS:
            await clients.run(producer.create_topic(topic, 2))
        senders = [clients.run(self._send(producer, number)) for number in range(SENDERS)]
        senders += [clients.run(self._order(producer, number)) for number in range(CUSTOMERS)]
        for _ in range(rounds):
            await asyncio.sleep(self._chance.uniform(0, 1.5))
            await self._fail()
            await clients.run(self._check(reader))
        for sender in senders:
            sender.cancel()
        self._broker_dies()
        await self._start()
        await asyncio.sleep(SETTLED_WITHIN_S)
        await clients.run(self._check(reader))
        if missing := self.halves - set(self._shown.values()):
            raise BrokenPromise(f"{min(missing)[:20]} was committed but is not visible")

    def _clients(self) -> tuple[TransactionProducer, PullConsumer]:
        producer = TransactionProducer(
            "customers",
            self._decisions,
            namesrv_addr=NAME_SERVER,
            send_timeout_ms=1000,
            retry_times_when_send_failed=1,
        )
        return producer, PullConsumer("readers", namesrv_addr=NAME_SERVER)

    # the broker

    def _process(self, name: str) -> SimulatedProcess:
        process = SimulatedProcess(
            name, "127.0.0.1", loop=self.loop, history=self.history, seed=self.seed, number=len(self._processes) + 1,
            clock=self._clock, network=lambda process: self._network,
        )  # fmt: skip
        self._processes.append(process)
        return process

    async def _start(self) -> None:
        """Starts the broker like a supervisor. Restarts it if it exits or cannot use its disk."""
        for _ in range(10):
            process = self._broker = self._process("broker")
            files = self.disk.opened()
            process.on_death(lambda files=files: self.disk.kill(files))
            process.on_death(self._network.end)
            settings = load_settings(None, self._settings).settings
            broker = process.call(
                lambda settings=settings, files=files: Broker(
                    settings, pace=PACE, files=files, new_flushing=_lying if self._lies else self.disk.new_flushing(files)
                )
            )
            self.starts += 1
            starting = process.run(broker.start())
            ended = asyncio.Event()
            process.on_death(ended.set)
            starting.add_done_callback(lambda _, ended=ended: ended.set())
            await ended.wait()
            if not process.is_alive:
                continue
            error = starting.exception()
            if error is None:
                return
            if not isinstance(error, StartError) or "Errno" not in str(error):
                raise BrokenPromise(f"the broker does not start: {error!r}") from error
            process.kill()
        raise BrokenPromise("the broker did not start in ten attempts")

    def _broker_dies(self) -> None:
        assert self._broker is not None
        self._broker.kill()

    def _power_fails(self) -> None:
        self._broker_dies()
        self.disk.lose_power()

    # faults

    async def _fail(self) -> None:
        chance = self._chance
        kind = chance.choice(
            ("kill", "power", "kill at", "power at", "syncs", "writes", "full", "slow", "slow power", "syncs power")
        )
        self.fired[kind] = self.fired.get(kind, 0) + 1
        ends: Callable[[], None] = chance.choice((self._broker_dies, self._power_fails))
        if kind == "kill":
            self._broker_dies()
        elif kind == "power":
            self._power_fails()
        elif kind in ("kill at", "power at"):
            self.disk.die_after(chance.choice((1, 2, 5, 20, 100)), self._broker_dies if kind == "kill at" else self._power_fails)
            await asyncio.sleep(5)
            self.disk.live()
        elif kind in ("syncs", "syncs power"):
            self.disk.fail_syncs(chance.choice((1, 2, 10)))
            await asyncio.sleep(chance.uniform(0, 1))
            if kind == "syncs power":
                self._power_fails()
            self.disk.fail_syncs(0)
        elif kind == "writes":
            self.disk.fail_writes(chance.choice((1, 3, 10)))
            await asyncio.sleep(chance.uniform(0, 1))
            ends()
            self.disk.fail_writes(0)
        elif kind == "full":
            self.disk.fill()
            await asyncio.sleep(chance.uniform(0, 2))
            if chance.random() < 0.5:
                ends()
            self.disk.free()
        else:
            self.disk.slow_down(0.2, chance.choice((0.5, 2, 7)))
            await asyncio.sleep(chance.uniform(0, 8))
            if kind == "slow power":
                self._power_fails()
            self.disk.speed_up()
        assert self._broker is not None
        if not self._broker.is_alive:
            if chance.random() < 0.3:
                self.disk.die_after(chance.randint(1, 40), chance.choice((self._broker_dies, self._power_fails)))
            await self._start()
            self.disk.live()

    # customers

    async def _send(self, producer: TransactionProducer, sender: int) -> None:
        number = 0
        while True:
            number += 1
            body = f"{sender}.{number}." + "x" * self._bodies.choice((1, 100, 600, 3000))
            topic = self._bodies.choice(TOPICS)
            self.sent.add(body)
            try:
                result = await producer.send(Message.of(topic, body, keys=[f"{sender}.{number}"]))
            except ClientError:
                await asyncio.sleep(0.2)
                continue
            if result.send_status == 0:
                place = (topic, result.queue.queue_id, result.queue_offset)
                if self.acknowledged.setdefault(place, body) != body:
                    raise BrokenPromise(f"two messages were stored at {place}")
            await asyncio.sleep(self._bodies.uniform(0, 0.05))

    async def _order(self, producer: TransactionProducer, customer: int) -> None:
        number = 0
        while True:
            number += 1
            is_committed = self._bodies.random() < 0.7
            body = f"order.{customer}.{number}.{'committed' if is_committed else 'rolled back'}"
            if is_committed:
                self.sent.add(body)
                self._decisions.committed.add(body)
            try:
                result = await producer.send_message_in_transaction(Message.of(TOPICS[0], body, keys=[body]))
            except ClientError:
                await asyncio.sleep(0.2)
                continue
            if is_committed and result.send_status == 0:
                self.halves.add(body)
            await asyncio.sleep(self._bodies.uniform(0, 0.1))

    async def _check(self, reader: PullConsumer) -> None:
        """Checks that all acknowledged or previously read messages are in their queues, and that all messages found were sent."""
        found: dict[Place, str] = {}
        acknowledged = dict(self.acknowledged)
        for topic in TOPICS:
            for queue in await _until_it_works(lambda topic=topic: reader.queues(topic)):
                found.update(await self._read(reader, queue))
        for place, body in (acknowledged | self._shown).items():
            if found.get(place) != body:
                raise BrokenPromise(f"at {place}: expected {body[:20]}, found {found.get(place, 'nothing')[:20]}")
        for place, body in found.items():
            if body not in self.sent:
                raise BrokenPromise(f"at {place}: {body[:20]} was never sent")
        self._shown = found

    async def _read(self, reader: PullConsumer, queue: MessageQueue) -> dict[Place, str]:
        found: dict[Place, str] = {}
        offset = 0
        while True:
            answer = await _until_it_works(lambda offset=offset: reader.pull(queue, offset))
            for message in answer.messages:
                found[queue.topic, queue.queue_id, message.queue_offset] = message.body.decode()
            if answer.next_offset <= offset or answer.is_offset_illegal:
                return found
            offset = answer.next_offset


class _Lying:
    def __init__(self, on_answer: Callable[[int], None]) -> None:
        self._on_answer = on_answer

    def start(self) -> None: ...

    def request(self, paths: Sequence[Path]) -> None:
        asyncio.get_running_loop().call_soon(self._on_answer, 0)

    def stop(self) -> None: ...


def _lying(on_answer: Callable[[int], None], on_unavailable: object, make_room: object) -> _Lying:
    return _Lying(on_answer)


async def _until_it_works(ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    for _ in range(30):
        try:
            return await ask()
        except ClientError as error:
            failure = error
            await asyncio.sleep(1)
    raise BrokenPromise(f"the broker does not answer: {failure!r}") from failure
