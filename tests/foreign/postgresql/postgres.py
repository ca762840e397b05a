"""A PostgreSQL server for the tests: a process in a temporary directory in memory, on a free port of the loopback interface."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from demo.ports import free_ports
from tests.waiting import wait_until

PASSWORD = "s3cret&p@ss"
PASSWORD_IN_URL = "s3cret%26p%40ss"
SECONDS = 120
"""How long a command may take on a machine that does much else."""
IN_MEMORY = Path("/dev/shm")
"""Where the files are, where the machine has it: no test is about PostgreSQL's disk, and others keep the disk busy."""


def binaries() -> Path | None:
    """Returns the folder of initdb and postgres in their newest version, or None if PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parent.parent.name))
    return found[-1].parent if found else None


class PostgresServer:
    """A PostgreSQL server with a user `shop`. Tests can stop and freeze it."""

    def __init__(self, programs: Path, directory: Path, primary: "PostgresServer | None" = None) -> None:
        """Creates a new database cluster in the directory, or a standby of `primary`. `start` starts the server."""
        self._user = "postgres" if os.geteuid() == 0 else None
        self._data = directory / "data"
        self._data.mkdir(mode=0o700)
        password_file = directory / "password"
        password_file.write_text(PASSWORD)
        for path in (directory, self._data, password_file):
            if self._user is not None:
                shutil.chown(path, self._user)
        (self.port,) = free_ports(1)
        self._control = [str(programs / "pg_ctl"), "-D", str(self._data), "-w", "-t", str(SECONDS)]
        if primary is None:
            initialise = ["-U", "shop", "-A", "scram-sha-256", "--pwfile", str(password_file), "--encoding=UTF8"]
            self._run([str(programs / "initdb"), *initialise, "-D", str(self._data), "--no-sync"])
        else:
            source = f"{primary.url.replace('+psycopg', '')}/postgres"
            copy = ["--checkpoint=fast", "--write-recovery-conf", "--no-sync"]
            self._run([str(programs / "pg_basebackup"), "-d", source, "-D", str(self._data), *copy])

    @property
    def url(self) -> str:
        """The beginning of the server's database URLs: postgresql+psycopg://shop:...@127.0.0.1:port."""
        return f"postgresql+psycopg://shop:{PASSWORD_IN_URL}@127.0.0.1:{self.port}"

    def start(self, options: str = "") -> None:
        """Starts the server, with these options of `postgres`. Returns once the server accepts connections."""
        own = f"-p {self.port} -k {self._data} -c listen_addresses=127.0.0.1 -c fsync=off {options}"
        self._run([*self._control, "-l", str(self._data / "log"), "-o", own, "start"])

    def kill(self) -> None:
        """Kills all processes of the server with SIGKILL."""
        server = psutil.Process(self._server_pid())
        server.suspend()  # it has no new children, and does not clean up after the others
        for process in (*server.children(), server):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        wait_until(lambda: _is_dead(server))
        (self._data / "postmaster.pid").unlink()

    def promote(self) -> None:
        """Makes the standby a primary. Returns once it accepts writes."""
        self._run([*self._control, "promote"])

    @property
    def has_standby(self) -> bool:
        """True if a standby receives the log."""
        return bool(self._log_senders())

    def hold_log(self) -> None:
        """Suspends what sends the log to the standby, which receives nothing further."""
        for sender in self._log_senders():
            sender.suspend()
            wait_until(lambda sender=sender: _is_frozen(sender))

    def stop(self) -> None:
        """Stops the server at once and breaks all connections. Later connections are refused."""
        try:
            self._run([*self._control, "-m", "immediate", "stop"])
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            error.add_note(self._state())
            raise

    def freeze(self) -> None:
        """Suspends all processes of the server. The kernel still accepts connections, but they get no response."""
        server = psutil.Process(self._server_pid())
        server.suspend()
        wait_until(lambda: _is_frozen(server))  # from now on it has no new children
        for child in server.children():
            with suppress(psutil.NoSuchProcess):
                child.suspend()
        wait_until(lambda: all(map(_is_frozen, server.children())))

    def thaw(self) -> None:
        """Resumes the processes of the server."""
        server = psutil.Process(self._server_pid())
        for process in (*server.children(), server):
            with suppress(psutil.NoSuchProcess):
                process.resume()
        wait_until(lambda: not _is_frozen(server))

    def _log_senders(self) -> list[psutil.Process]:
        children = psutil.Process(self._server_pid()).children()
        return [child for child in children if "walsender" in "".join(child.cmdline())]

    def _server_pid(self) -> int:
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def _state(self) -> str:
        """Returns the processes and the last log lines, to show why the server does not stop."""
        states = []
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            server = psutil.Process(self._server_pid())
            states = [f"{process.pid} {process.status()} {process.cmdline()}" for process in (server, *server.children())]
        return "\n".join(["processes:", *states, "log:", *(self._data / "log").read_text().splitlines()[-40:]])

    def _run(self, command: list[str]) -> None:
        # pg_ctl hands its output on to the server, which would keep a pipe open.
        subprocess.run(
            command, user=self._user, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS + 30,
            cwd=self._data,
        )  # fmt: skip


def _is_frozen(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    return True  # it answers nobody


def _is_dead(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


@contextmanager
def running_postgres(programs: Path, primary: PostgresServer | None = None, options: str = "") -> Iterator[PostgresServer]:
    """Yields a running server, or a standby of `primary`. Stops and removes it after the block."""
    # Not below pytest's directory, which only its owner may enter: PostgreSQL does not run as root.
    with TemporaryDirectory(prefix="postgres-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as directory:
        server = PostgresServer(programs, Path(directory), primary)
        server.start(options)
        try:
            yield server
        finally:
            # It may be stopped already, or killed.
            with suppress(FileNotFoundError, psutil.NoSuchProcess, subprocess.CalledProcessError):
                server.thaw()
                server.stop()
