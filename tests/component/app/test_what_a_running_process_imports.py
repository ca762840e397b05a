"""Tests that running processes import only the modules that they need, because imported modules stay in memory."""

import subprocess
import sys
from pathlib import Path

from demo.ports import free_ports
from rocketmq_broker.platform import flush_helper

LIBRARIES = {"msgspec", "isal", "librt", "typing_extensions", "rocketmq_broker__mypyc"}
"""Those of a broker that serves; msgspec imports typing_extensions."""
ANY_PORTS = "listenPort=0\nnamesrvListenPort=0\n"
CLUSTER_ROOMS = {"admin", "client", "cluster"}


def imports(told: str) -> set[str]:
    """Returns the modules listed in the output of `-X importtime`."""
    lines = (line.rpartition("|") for line in told.splitlines() if line.startswith("import time:"))
    return {name.strip() for _, _, name in lines}


def imported_by(*arguments: str) -> set[str]:
    """Runs Python with these arguments until it exits, and returns the imported modules."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60)
    return imports(done.stderr)


def imports_of(*command: str, ready: str, told_in: Path) -> set[str]:
    """Starts a program, and returns the modules that it has imported when it prints `ready`."""
    with told_in.open("w") as told:
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", *command], stdout=subprocess.PIPE, stderr=told, text=True
        )
        try:
            assert process.stdout is not None
            assert any(ready in line for line in process.stdout), told_in.read_text()[-2000:]
        finally:
            process.terminate()
            process.communicate(timeout=60)
    return imports(told_in.read_text())


def foreign(modules: set[str]) -> set[str]:
    """Returns the third-party libraries among the modules. Ignores `org` of Jython, which `platform` tries to import."""
    names = {module.split(".")[0] for module in modules - imported_by("-c", "")}
    return names - sys.stdlib_module_names - {"rocketmq_broker", "org", "msvcrt", "nt"}


def rooms(modules: set[str]) -> set[str]:
    return {parts[1] for module in modules if (parts := module.split("."))[0] == "rocketmq_broker" and len(parts) > 2}


def test_a_broker_needs_no_tool_no_client_and_no_account_file(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(f"{ANY_PORTS}storePathRootDir={tmp_path / 'store'}\n")
    modules = imports_of("rocketmq_broker", "-c", str(conf), ready="boot success", told_in=tmp_path / "imports")
    assert foreign(modules) <= LIBRARIES
    assert rooms(modules) & {"admin", "client", "metrics", "proxy", "testing"} == set()
    assert "rocketmq_broker.cluster.supervisor" not in modules


def test_a_name_server_needs_no_store_and_no_tool(tmp_path: Path) -> None:
    command = ("rocketmq_broker.nameserver", "-p", "0", "--kv-config", str(tmp_path / "kv.json"))
    modules = imports_of(*command, ready="boot success", told_in=tmp_path / "imports")
    assert foreign(modules) <= LIBRARIES
    assert rooms(modules) <= {"acl", "logs", "message", "nameserver", "platform", "protocol", "remoting"}


def test_a_supervisor_needs_no_tables_on_a_screen(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    (port,) = free_ports(1)
    conf.write_text(f"listenPort=0\nnamesrvListenPort={port}\nstorePathRootDir={tmp_path / 'cluster'}\n")
    command = ("rocketmq_broker", "-c", str(conf), "--brokers", "1")
    modules = imports_of(*command, ready="The cluster[", told_in=tmp_path / "imports")
    assert foreign(modules) <= LIBRARIES
    assert rooms(modules) >= CLUSTER_ROOMS


def test_the_flush_process_needs_what_python_starts_with() -> None:
    # `os` comes with `site`, which it goes without.
    alone = ("-I", "-S")
    assert imported_by(*alone, flush_helper.__file__) <= imported_by(*alone, "-c", "import os") | {"__future__"}
