"""Tests of the broker as a process: its start, refused starts, its exit, and its state after a kill."""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.pull import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader
from rocketmq_broker.remoting.client import RemotingClient
from tests.e2e.clients import SEND

pytestmark = pytest.mark.e2e

BOOT = re.compile(r"The broker\[(?P<name>[^,]+), (?P<address>[^\]]+)\] boot success\. .*name server is (?P<name_server>[^,]+),")


class Process:
    """A broker process on free ports."""

    def __init__(self, directory: Path, *lines: str) -> None:
        path = directory / "broker.conf"
        settings = ("listenPort=0", "namesrvListenPort=0", f"storePathRootDir={directory}/store", *lines)
        path.write_text("\n".join(settings))
        command = [sys.executable, "-m", "rocketmq_broker", "-c", str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def boot(self) -> re.Match[str]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = BOOT.match(line)
        assert match is not None, line or self.end()
        return match

    def end(self) -> tuple[int, str]:
        """Waits for the process, and returns its exit code and its error output."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        return self.end()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    processes = []

    def start_one(*lines: str) -> Process:
        processes.append(Process(tmp_path, *lines))
        return processes[-1]

    yield start_one
    for process in processes:
        if process.process.poll() is None:
            process.process.kill()
        process.process.communicate()


async def send(address: str, count: int) -> list[int]:
    client = RemotingClient()
    answers = [await client.invoke(address, RequestCode.SEND_MESSAGE_V2, SEND, b"body", timeout_ms=30_000) for _ in range(count)]
    await client.close()
    return [answer.code for answer in answers]


async def max_offset(address: str) -> int:
    client = RemotingClient()
    header = GetMaxOffsetRequestHeader(topic="orders", queue_id=0)
    answer = await client.invoke(address, RequestCode.GET_MAX_OFFSET, header, timeout_ms=30_000)
    await client.close()
    return answer.decode_header(GetMaxOffsetResponseHeader).offset


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_broker_cleanly(start: Callable[..., Process], number: int) -> None:
    broker = start()
    broker.boot()
    assert broker.stop(number) == (0, "")


def test_what_was_acknowledged_is_there_after_a_stop_and_after_a_kill(start: Callable[..., Process]) -> None:
    broker = start()
    codes = asyncio.run(send(broker.boot()["address"], 20))
    assert codes == [ResponseCode.SUCCESS] * 20
    broker.stop(signal.SIGKILL)
    broker = start()
    address = broker.boot()["address"]
    assert asyncio.run(max_offset(address)) == 20
    assert asyncio.run(send(address, 1)) == [ResponseCode.SUCCESS]
    broker.stop()
    broker = start()
    assert asyncio.run(max_offset(broker.boot()["address"])) == 21


def test_a_second_broker_on_the_same_store_is_refused(start: Callable[..., Process], tmp_path: Path) -> None:
    start().boot()
    code, errors = start().end()
    assert (code, errors) == (1, f"The broker cannot start: the store {tmp_path}/store is in use by another broker\n")


@pytest.mark.parametrize("property_name", ["listenPort", "namesrvListenPort"])
def test_a_port_that_is_in_use_is_one_line(start: Callable[..., Process], tmp_path: Path, property_name: str) -> None:
    port = start().boot()["address"].rpartition(":")[2]
    code, errors = start(f"{property_name}={port}", f"storePathRootDir={tmp_path}/other").end()
    complaint = f"The broker cannot start: cannot listen on 127.0.0.1:{port} ({property_name}): the port is in use\n"
    assert (code, errors) == (1, complaint)


def test_a_bad_value_is_one_line_and_exit_code_2(start: Callable[..., Process], tmp_path: Path) -> None:
    code, errors = start("flushDiskType=SOMETIMES").end()
    assert code == 2
    assert errors.startswith(f"{tmp_path}/broker.conf: flushDiskType=SOMETIMES: ")
    assert errors.count("\n") == 1


def test_an_unknown_property_is_a_warning_and_the_broker_starts(start: Callable[..., Process], tmp_path: Path) -> None:
    broker = start("lisstenPort=1")
    broker.boot()
    assert broker.stop() == (0, f"warning: {tmp_path}/broker.conf: unknown property lisstenPort is ignored\n")


def test_the_brokers_registers_with_a_name_server_of_its_own_process(start: Callable[..., Process]) -> None:
    broker = start()
    match = broker.boot()
    route = asyncio.run(_cluster(match["name_server"]))
    assert match["address"].encode() in route


async def _cluster(name_server: str) -> bytes:
    client = RemotingClient()
    answer = await client.invoke(name_server, RequestCode.GET_BROKER_CLUSTER_INFO, timeout_ms=30_000)
    await client.close()
    return answer.body
