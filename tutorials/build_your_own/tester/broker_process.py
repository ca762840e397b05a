"""Starts, stops, kills and restarts the broker under test as a child process."""

import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tutorials.build_your_own.tester.children import Children
from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.timeline import Kind, Timeline

START_PATIENCE_S = 30.0
"""The minimum time in seconds for a start. It is enough to start a JVM or to compile with `go run`."""
_TAIL_LINES = 12
_DEATH_PATIENCE_S = 5.0


class BrokerProcess:
    """The process of the broker under test, with its port and its store."""

    def __init__(self, command: Sequence[str], home: Path, port: int, settings: Mapping[str, str], children: Children) -> None:
        """Writes broker.conf into `home`. `settings` are the stage's settings, in addition to those that all stages share."""
        home.mkdir(parents=True, exist_ok=True)
        self.store = home / "store"
        self.port = port
        self.settings = {
            "brokerName": "broker-a",
            "brokerIP1": "127.0.0.1",
            "listenPort": str(port),
            "namesrvListenPort": "0",
            "storePathRootDir": str(self.store),
            "storePathCommitLog": str(self.store / "commitlog"),
            "mappedFileSizeCommitLog": str(16 * 1024 * 1024),
            "flushDiskType": "SYNC_FLUSH",
            "messageIndexEnable": "false",
            **settings,
        }
        self._settings_path = home / "broker.conf"
        self._settings_path.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))
        self._log = home / "broker.log"
        self._command = [*command, "-c", str(self._settings_path)]
        self._children = children
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, timeline: Timeline, patience_s: float) -> None:
        """Starts the broker and waits until it accepts connections. Raises Failed."""
        timeline.add(Kind.PROCESS, f"started: {' '.join(self._command)}")
        self._child = self._children.spawn(self._command, self.settings, self._log)
        deadline = time.monotonic() + max(patience_s, START_PATIENCE_S)
        while not self._accepts():
            self.refuse_dead(f"a program that listens on 127.0.0.1:{self.port}")
            if time.monotonic() > deadline:
                raise Failed(
                    f"a program that listens on 127.0.0.1:{self.port} (listenPort in broker.conf)",
                    f"no connection accepted after {max(patience_s, START_PATIENCE_S):g} s",
                )
            time.sleep(0.01)
        timeline.add(Kind.PROCESS, f"your broker accepts connections on 127.0.0.1:{self.port}")

    def kill(self, timeline: Timeline) -> None:
        """Kills the broker with SIGKILL. Raises Failed if its port still accepts connections."""
        assert self._child is not None
        self._children.kill(self._child)
        deadline = time.monotonic() + _DEATH_PATIENCE_S
        while self._accepts() and time.monotonic() < deadline:
            time.sleep(0.01)
        timeline.add(Kind.PROCESS, "killed with -9")
        if self._accepts():
            raise Failed(
                f"a closed port {self.port} after kill -9",
                "a program still accepts connections there",
                hint="The tester kills your command and its child processes. Does another program run your broker, as docker "
                "does? Let the command run the broker itself.",
            )

    def end(self) -> None:
        """Kills all processes of the broker that are still running."""
        if self._child is not None:
            self._children.kill(self._child)

    def stop(self, timeline: Timeline, patience_s: float) -> None:
        """Stops the broker with SIGTERM. Kills it with SIGKILL if it does not end within `patience_s` seconds."""
        assert self._child is not None
        self._child.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(patience_s)
        self._children.kill(self._child)
        timeline.add(Kind.PROCESS, "ended with SIGTERM")

    def refuse_dead(self, wanted: str = "a running broker") -> None:
        """Raises Failed if the process has ended. `wanted` describes the expected state."""
        code = self._child.poll() if self._child is not None else None
        if code is None:
            return
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = next((line for line in reversed(self.output().splitlines()) if line.strip()), "")
        raise Failed(wanted, f"your program ended with {how}{': ' if last else ''}{last}", hint=_known_cause(self.output()))

    def output(self) -> str:
        """Returns the last lines of the broker's output. The output includes all earlier starts."""
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def _known_cause(output: str) -> str:
    if "address already in use" in output.lower():
        return "The port is still in use after a kill: set SO_REUSEADDR on the listening socket before you bind it."
    return ""
