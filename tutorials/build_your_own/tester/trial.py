"""Provides a stage with the broker, connections to it, its files, and functions to check claims."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tutorials.build_your_own.tester.broker_process import BrokerProcess
from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.store_files import StoreFiles
from tutorials.build_your_own.tester.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about the broker that a stage checks, with a hint for the reader if the statement is false."""

    sentence: str
    hint: str
    ours: str
    """The path of the file in this project that implements the claimed behaviour."""
    apache: str
    """The class or method of Apache RocketMQ that implements the claimed behaviour."""


class ClaimFailed(Exception):
    """A claim does not hold. The exception contains the claim and the failed check."""

    def __init__(self, claim: Claim, failed: Failed) -> None:
        super().__init__(f"{claim.sentence}: {failed}")
        self.claim = claim
        self.failed = failed


class Trial:
    """One run of a stage."""

    def __init__(self, broker: BrokerProcess, timeline: Timeline, patience_s: float) -> None:
        self.broker = broker
        self.timeline = timeline
        self.patience_s = patience_s
        self.files = StoreFiles(broker.store, timeline)
        self.held: list[Claim] = []
        """The claims that have been checked and hold."""
        self._connections: list[Connection] = []

    @contextmanager
    def claim(self, sentence: str, *, hint: str, ours: str, apache: str) -> Iterator[None]:
        """Runs the block, which checks the claim `sentence`. Raises ClaimFailed if a check in the block fails."""
        claim = Claim(sentence, hint, ours, apache)
        try:
            yield
        except Failed as failed:
            raise ClaimFailed(claim, failed) from None
        except OSError as error:
            raise ClaimFailed(claim, Failed("a store whose files can be read", str(error))) from None
        self.held.append(claim)

    def connect(self, name: str = "") -> Connection:
        """Opens a connection to the broker. Raises Failed if the broker does not accept it.

        `name` identifies the connection in the timeline.
        """
        try:
            connection = Connection(name, self.broker.port, self.timeline, self.patience_s, self.broker.refuse_dead)
        except OSError as error:
            self.broker.refuse_dead()
            raise Failed("an accepted connection", str(error)) from None
        self._connections.append(connection)
        return connection

    def reconnect(self) -> Connection:
        """Closes all connections and opens a new one, for a broker that serves one connection at a time."""
        self.hang_up()
        return self.connect()

    def start(self, sentence: str = "It starts and accepts connections on listenPort") -> None:
        """Starts the broker. Raises ClaimFailed if the broker does not accept connections."""
        with self.claim(
            sentence,
            hint="The tester adds `-c FILE` to your command. FILE is broker.conf, with one NAME=VALUE per line. Listen on "
            "127.0.0.1, port listenPort. Environment variables of the same names have the settings, too.",
            ours="broker/rocketmq_broker/app/ports.py",
            apache="NettyRemotingServer.start",
        ):
            self.broker.start(self.timeline, self.patience_s)

    def kill(self) -> None:
        """Closes all connections and kills the broker with SIGKILL."""
        self.hang_up()
        self.broker.kill(self.timeline)

    def stop(self) -> None:
        """Stops the broker with SIGTERM."""
        self.hang_up()
        self.broker.stop(self.timeline, self.patience_s)

    def hang_up(self) -> None:
        """Closes all connections."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()


Play = Callable[[Trial], None]
"""A function that runs the checks of a stage. It raises ClaimFailed if a check fails."""


def check(is_right: bool, wanted: str, got: str, *, hint: str = "") -> None:
    """Raises Failed if `is_right` is False."""
    if not is_right:
        raise Failed(wanted, got, hint=hint)
