"""A PostgreSQL server for tests: one for each test process, on a free port, removed when the process ends."""

import atexit
import functools
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from demo.ports import free_ports

_PROGRAMS = [Path("/usr/lib/postgresql/15/bin"), Path("/usr/lib/postgresql/16/bin"), Path("/usr/lib/postgresql/17/bin")]
_count = itertools.count(1)


def new_database(encoding: str = "UTF8") -> str | None:
    """Creates an empty database. Returns its URL (postgresql+psycopg://), or None if PostgreSQL is not installed."""
    port = _server_port()
    if port is None:
        return None
    name = f"test_{os.getpid()}_{next(_count)}"
    with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'".encode())
    return f"postgresql+psycopg://postgres@127.0.0.1:{port}/{name}"


@functools.cache
def _server_port() -> int | None:
    found = shutil.which("initdb", path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, _PROGRAMS)]))
    if found is None:
        return None
    programs = Path(found).resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    user: list[str] = []
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"]
    subprocess.run(["setpriv", *user, *initdb], check=True, timeout=60, **quiet)  # type: ignore[call-overload]
    (port,) = free_ports(1)
    settings = [f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=200"]
    settings.append("max_prepared_transactions=10")  # for XA
    options = [option for setting in settings for option in ("-c", setting)]
    # The server dies with this process, however that ends.
    server = subprocess.Popen(
        ["setpriv", *user, "--pdeathsig", "KILL", str(programs / "postgres"), "-D", str(data), *options],
        **quiet,  # type: ignore[call-overload]
    )
    atexit.register(_stop, server)
    _wait_until_it_answers(port)
    return port


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()


def _wait_until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def pgbouncer() -> Path | None:
    """Returns the path of PgBouncer, or None if it is not installed."""
    found = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    return Path(found) if found else None


@contextmanager
def behind_pgbouncer(program: Path, url: str, folder: Path, settings: str = "") -> Iterator[str]:
    """Runs a PgBouncer with transaction pooling and two server connections for the database. Yields its URL."""
    place = make_url(url)
    (port,) = free_ports(1)
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(
        f"[databases]\n* = host={place.host} port={place.port} user={place.username}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 500\n{settings}\n"
    )
    # It refuses to be root; as that user it must come to its file, which is its standard input therefore.
    user = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.geteuid() == 0 else []
    with configuration.open() as given:
        server = subprocess.Popen(
            ["setpriv", *user, "--pdeathsig", "KILL", str(program), "-q", "/dev/stdin"],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
    try:
        _wait_until_it_answers(port)
        yield place.set(port=port).render_as_string(hide_password=False)
    finally:
        _stop(server)
