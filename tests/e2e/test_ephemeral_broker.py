"""Tests of `python -m rocketmq_broker --ephemeral`, which runs a broker for tests of programs in any language."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.client import EventLoopThread, Message, TransactionProducer
from tests.unit.testing.listeners import Transactions

pytestmark = pytest.mark.e2e
CHECKOUT = Path(__file__).parents[2]


class Broker:
    """The broker's process and its control commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.addresses: dict[str, Any] = json.loads(process.stdout.readline())

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.addresses['control']}/{path}", timeout=60) as answer:
            return json.load(answer)

    def post(self, path: str, **arguments: object) -> Any:
        request = urllib.request.Request(f"{self.addresses['control']}/{path}", json.dumps(arguments).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def started(*options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rocketmq_broker", "--ephemeral", *options]
    return subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with started("--control") as process:
        yield Broker(process)
        process.terminate()
        assert process.wait(30) == 0


def test_a_lost_commit_is_settled_by_a_check_back_within_moments(broker: Broker) -> None:
    with EventLoopThread() as loop:
        producer = TransactionProducer("p", Transactions(), namesrv_addr=broker.addresses["namesrvAddr"])
        loop.run(producer.start())
        broker.post("lose-next-decision")
        loop.run(producer.send_message_in_transaction(Message.of("orders", b"1", keys=["order-1"])))
        assert loop.run(producer.is_connected())
        assert [one["keys"] for one in broker.get("pending")] == [["order-1"]]
        began_s = time.monotonic()
        broker.post("advance", minutes=1)
        assert broker.get("committed?key=order-1")["body"] == "1"
        assert time.monotonic() - began_s < 60
        loop.run(producer.shutdown())


def test_clients_of_rocketmq_5_find_their_port_in_the_line_and_nobody_may_command_unless_asked_for() -> None:
    with started("--grpc-port", "0") as process:
        addresses = Broker(process).addresses
        assert addresses["control"] is None
        host, port = addresses["grpcEndpoint"].split(":")
        with socket.create_connection((host, int(port)), timeout=10):
            process.terminate()
        assert process.wait(30) == 0


def test_control_alone_makes_no_sense() -> None:
    command = [sys.executable, "-m", "rocketmq_broker", "--control"]
    ended = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (
        2,
        "rocketmq-broker: --control requires --ephemeral. See rocketmq-broker --help\n",
    )
