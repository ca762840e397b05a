"""A PostgreSQL of the tests' own: a process in a temporary directory, on a free port of the loopback interface."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def running_postgres(programs: Path) -> Iterator[str]:
    """A server with a user `shop`, and the beginning of its URL: postgresql+psycopg://shop:...@127.0.0.1:port."""
    # Not below pytest's directory, which only its owner may enter: PostgreSQL does not run as root.
    with TemporaryDirectory(prefix="postgres-") as directory:
        yield from _run(programs, Path(directory), "postgres" if os.geteuid() == 0 else None)


def _run(programs: Path, directory: Path, user: str | None) -> Iterator[str]:
    data = directory / "data"
    data.mkdir()
    password_file = directory / "password"
    password_file.write_text(PASSWORD)
    for path in (directory, data, password_file):
        if user is not None:
            shutil.chown(path, user)
    initialise = ["-D", str(data), "-U", "shop", "-A", "scram-sha-256", "--pwfile", str(password_file), "--no-sync"]
    subprocess.run([programs / "initdb", *initialise], user=user, check=True, capture_output=True, timeout=SECONDS, cwd=data)
    (port,) = free_ports(1)
    options = f"-p {port} -k {data} -c listen_addresses=127.0.0.1 -c fsync=off"
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w"]
    start = [*control, "-l", str(data / "log"), "-o", options, "start"]
    subprocess.run(start, user=user, check=True, stdout=subprocess.DEVNULL, timeout=SECONDS, cwd=data)
    try:
        yield f"postgresql+psycopg://shop:{PASSWORD_IN_URL}@127.0.0.1:{port}"
    finally:
        subprocess.run(
            [*control, "-m", "immediate", "stop"], user=user, check=False, capture_output=True, timeout=SECONDS, cwd=data
        )
