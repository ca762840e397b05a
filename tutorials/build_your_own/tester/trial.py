"""The means of one stage: the broker, connections to it, its files, and the checked claims."""

from __future__ import annotations

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
    """A sentence that must hold for the broker, and the help if it does not."""

    sentence: str
    hint: str
    ours: str
    """The file of this project that does it."""
    apache: str
    """The class of Apache RocketMQ that does it."""


class ClaimFailed(Exception):
    """A failed claim, and the finding."""

    def __init__(self, claim: Claim, failed: Failed) -> None:
        super().__init__(f"{claim.sentence}: {failed}")
        self.claim = claim
        self.failed = failed


class Trial:
    """One run of one stage."""

    def __init__(self, broker: BrokerProcess, timeline: Timeline, patience_s: float) -> None:
        self.broker = broker
        self.timeline = timeline
        self.patience_s = patience_s
        self.files = StoreFiles(broker.store, timeline)
        self.held: list[Claim] = []
        """The claims that have been found true."""
        self._connections: list[Connection] = []

    @contextmanager
    def claim(self, sentence: str, *, hint: str, ours: str, apache: str) -> Iterator[None]:
        """Proves the sentence by the checks in the block. Raises ClaimFailed if one of them fails."""
        claim = Claim(sentence, hint, ours, apache)
        try:
            yield
        except Failed as failed:
            raise ClaimFailed(claim, failed) from None
        except OSError as error:
            raise ClaimFailed(claim, Failed("a store whose files can be read", str(error))) from None
        self.held.append(claim)

    def connect(self, name: str = "") -> Connection:
        """Opens a connection to the broker; `name` identifies it in the timeline. Raises Failed."""
        try:
            connection = Connection(name, self.broker.port, self.timeline, self.patience_s, self.broker.refuse_dead)
        except OSError as error:
            self.broker.refuse_dead()
            raise Failed("a connection that is accepted", str(error)) from None
        self._connections.append(connection)
        return connection

    def connect_anew(self) -> Connection:
        """Ends all connections and opens one: for a broker that serves one at a time."""
        self.hang_up()
        return self.connect()

    def start(self, sentence: str = "It starts and accepts connections on listenPort") -> None:
        """Starts the broker. Raises ClaimFailed."""
        with self.claim(
            sentence,
            hint="The tester adds `-c FILE` to your command. FILE is broker.conf: NAME=VALUE on each line. Listen on 127.0.0.1, "
            "port listenPort. The settings are in the environment too, under the same names.",
            ours="broker/rocketmq_broker/app/ports.py",
            apache="NettyRemotingServer.start",
        ):
            self.broker.start(self.timeline, self.patience_s)

    def kill(self) -> None:
        """Ends all connections, then kills the broker by -9."""
        self.hang_up()
        self.broker.kill(self.timeline)

    def stop(self) -> None:
        """Stops the broker by SIGTERM."""
        self.hang_up()
        self.broker.stop(self.timeline, self.patience_s)

    def hang_up(self) -> None:
        """Ends all connections."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()


Play = Callable[[Trial], None]
"""Runs one stage. Raises ClaimFailed."""


def check(is_right: bool, wanted: str, got: str, *, hint: str = "") -> None:
    """Raises Failed if `is_right` is false."""
    if not is_right:
        raise Failed(wanted, got, hint=hint)
