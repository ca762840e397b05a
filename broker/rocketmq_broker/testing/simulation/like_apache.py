"""Makes a broker of a simulated world behave like Apache's, even after restarts (see `RocketMQ.as_apache`)."""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import TypeVar

from rocketmq_broker.config.settings import BrokerSettings
from rocketmq_broker.remoting.connections.connection import RequestHandler
from rocketmq_broker.remoting.network import Listener, Network
from rocketmq_broker.testing.apache import LikeApache
from rocketmq_broker.testing.apache.release import release_named
from rocketmq_broker.testing.interceptor import Faults, Interceptor
from rocketmq_broker.testing.journal import EventKind, Journal
from rocketmq_broker.testing.memory_network import ServedConnection, Tap
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import SimulatedProcess

P = TypeVar("P", bound=asyncio.Protocol)


class HistoryJournal(Journal):
    """A journal that records faults in the history of a world."""

    def __init__(self, history: History, name: str, now_s: Callable[[], float]) -> None:
        """Creates a journal for the broker `name`."""
        super().__init__(now_s)
        self._history = history
        self._name = name

    def note(self, kind: EventKind, text: str, keys: Iterable[str | None] = ()) -> None:
        """Records faults in the history. Other events are recorded from the frames."""
        if kind is EventKind.FAULT:
            self._history.note(self._name, "fault", text, tuple(key for key in keys if key))


class TappedNetwork:
    """A process's network that taps the connections of its servers."""

    def __init__(self, network: Network, tap: Tap) -> None:
        """Wraps `network`. `tap` wraps the transport of each connection of a server."""
        self._network = network
        self._tap = tap

    async def bind(
        self, new_protocol: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int, *, is_exclusive: bool = False
    ) -> Listener:
        """Binds a port. Raises OSError."""
        return await self._network.bind(lambda: self.served(new_protocol()), host, port, backlog, is_exclusive=is_exclusive)

    async def connect(self, new_protocol: Callable[[], P], host: str, port: int, tls: ssl.SSLContext | None) -> P:
        """Makes a connection. Raises OSError, ssl.SSLError."""
        return await self._network.connect(new_protocol, host, port, tls)

    def served(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Wraps a server's protocol, to tap its transport."""
        return ServedConnection(protocol, {}, self._tap)


class LikeApacheInterceptors:
    """The interceptors of one broker, one for each of its processes. Their records about half messages survive restarts."""

    def __init__(self, history: History, name: str, release: int, elapsed_s: Callable[[], float]) -> None:
        """Creates the interceptors of broker `name`. `release` is 4 for Apache's 4.9.7, or 5 for 5.3.3.

        `elapsed_s` returns the world's time. Raises ValueError for another release.
        """
        self._release = release_named(release)
        self._elapsed_s = elapsed_s
        self._died_s: float | None = None
        self._faults = Faults()
        self._journal = HistoryJournal(history, name, elapsed_s)
        self._interceptor: Interceptor | None = None

    def network(self, network: Network) -> Network:
        """Returns the network for a new process. Its frames pass through the interceptor."""
        return TappedNetwork(network, lambda transport: self._active_interceptor.tap(transport))

    def before(self, broker: RequestHandler, process: SimulatedProcess, settings: BrokerSettings) -> RequestHandler:
        """Returns the interceptor for a new process.

        Call it in the process, so that the interceptor's timers end with the process.
        """
        interceptor = self._interceptor = Interceptor(broker, self._faults, self._journal)
        like_apache = self._faults.like_apache
        if like_apache is None:
            interceptor.imitate_apache(self._new(interceptor, settings))
        else:
            like_apache.broker_stopped(is_killed=True)
            self._died_s = None
            like_apache.broker_restarted(interceptor)
        process.on_death(self._note_death)
        return interceptor

    def _new(self, interceptor: Interceptor, settings: BrokerSettings) -> LikeApache:
        return LikeApache(
            interceptor,
            self._journal,
            now_s=self._now_s,
            release=self._release,
            check_interval_s=settings.transaction_check_interval / 1000,
            check_max=settings.transaction_check_max,
        )

    def _now_s(self) -> float:
        """Returns the elapsed seconds. While a process starts, returns the time at which the previous process ended.

        No op batch is written between the end of a process and the start of the next one.
        """
        return self._elapsed_s() if self._died_s is None else self._died_s

    def _note_death(self) -> None:
        self._died_s = self._elapsed_s()

    @property
    def _active_interceptor(self) -> Interceptor:
        assert self._interceptor is not None, "a connection was made before the broker began"
        return self._interceptor
