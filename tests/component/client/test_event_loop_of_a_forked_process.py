"""Tests of programs that use clients without `with`, and of forks. Each test runs in a separate interpreter."""

import subprocess
import sys

import pytest

from rocketmq_broker.testing import SyncRocketMQ

BEGIN = """
import logging, os, sys
from rocketmq_broker.client import EventLoopThread, Message, NotRunning, Producer
loop = EventLoopThread()
loop.start()
producer = loop.enter(Producer("shop", namesrv_addr=sys.argv[1]))
def sent():
    return loop.run(producer.send(Message.of("orders", "order 1", keys=["order-1"]))).send_status.name
"""
FORKED = """
child = os.fork()
try:
    {call}
except NotRunning as error:
    print(error, flush=True)
if child:
    os.waitpid(child, 0)
"""


def played(program: str, namesrv_addr: str) -> str:
    done = subprocess.run([sys.executable, "-c", program, namesrv_addr], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_a_program_without_a_block_sends_and_is_shut_down_when_it_exits(rocketmq: SyncRocketMQ) -> None:
    logged = "logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(message)s')\n"
    said = played(BEGIN + logged + "print(sent(), flush=True)", rocketmq.namesrv_addr)
    assert said.splitlines()[-2:] == ["SEND_OK", "producer shop stopped"]


@pytest.mark.parametrize("call", ["sent()", "loop.start()"])
def test_a_fork_is_told_to_start_after_the_fork_and_its_parent_goes_on(rocketmq: SyncRocketMQ, call: str) -> None:
    said = played(BEGIN + FORKED.format(call="child or " + call) + "child and print(sent())", rocketmq.namesrv_addr)
    assert "does not run in its fork" in said
    assert "with gunicorn, omit --preload" in said
    assert said.endswith("SEND_OK\n")
