"""A PostgreSQL of the tests' own: a process in a temporary directory, on a free port of the loopback interface."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from demo.ports import free_ports

PASSWORD = "s3cret&p@ss"
PASSWORD_IN_URL = "s3cret%26p%40ss"
SECONDS = 60


def binaries() -> Path | None:
    """Where initdb and postgres are, the newest version's; None if PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parent.parent.name))
    return found[-1].parent if found else None


class PostgresServer:
    """A server with a user `shop`, that can go away as servers do."""

    def __init__(self, programs: Path, directory: Path) -> None:
        """Makes the database cluster in the directory; `start` starts the server."""
        self._user = "postgres" if os.geteuid() == 0 else None
        self._data = directory / "data"
        self._data.mkdir()
        password_file = directory / "password"
        password_file.write_text(PASSWORD)
        for path in (directory, self._data, password_file):
            if self._user is not None:
                shutil.chown(path, self._user)
        (self._port,) = free_ports(1)
        self._control = [str(programs / "pg_ctl"), "-D", str(self._data), "-w"]
        initialise = ["-D", str(self._data), "-U", "shop", "-A", "scram-sha-256", "--pwfile", str(password_file), "--no-sync"]
        self._run([str(programs / "initdb"), *initialise])

    @property
    def url(self) -> str:
        """The beginning of its URL: postgresql+psycopg://shop:...@127.0.0.1:port."""
        return f"postgresql+psycopg://shop:{PASSWORD_IN_URL}@127.0.0.1:{self._port}"

    def start(self) -> None:
        """Answers when it returns."""
        options = f"-p {self._port} -k {self._data} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run([*self._control, "-l", str(self._data / "log"), "-o", options, "start"])

    def stop(self) -> None:
        """Breaks all connections; from now on they are refused."""
        self._run([*self._control, "-m", "immediate", "stop"])

    def freeze(self) -> None:
        """Stops all its processes: connections are accepted still, by the kernel, and nothing is answered."""
        server = self._server_pid()
        os.kill(server, signal.SIGSTOP)  # first, so that it has no new children
        for child in _children(server):
            os.kill(child, signal.SIGSTOP)

    def thaw(self) -> None:
        """Its processes go on where they were."""
        server = self._server_pid()
        for process in (*_children(server), server):
            os.kill(process, signal.SIGCONT)

    def _server_pid(self) -> int:
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def _run(self, command: list[str]) -> None:
        # pg_ctl hands its output on to the server, which would keep a pipe open.
        subprocess.run(
            command, user=self._user, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS,
            cwd=self._data,
        )  # fmt: skip


def _children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


@contextmanager
def running_postgres(programs: Path) -> Iterator[PostgresServer]:
    """A server that is started, and gone at the end."""
    # Not below pytest's directory, which only its owner may enter: PostgreSQL does not run as root.
    with TemporaryDirectory(prefix="postgres-") as directory:
        server = PostgresServer(programs, Path(directory))
        server.start()
        try:
            yield server
        finally:
            with suppress(FileNotFoundError, subprocess.CalledProcessError):  # it may be stopped already
                server.thaw()
                server.stop()
