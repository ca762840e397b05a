"""Tests that the sample loses its state when its process ends, and that the listener with a database keeps it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from rocketmq_broker.testing import RocketMQ, SyncRocketMQ
from tutorials.recipes.official_sample.sample import CountingListener, send_ten
from tutorials.recipes.official_sample.stored import Base, StoringListener, conclude_all

TOPIC = "TopicTest1234"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{tmp_path}/greetings.db")
    Base.metadata.create_all(engine)
    return engine


async def delivered(rocketmq: RocketMQ) -> list[int]:
    return sorted(int(message.text.split()[-1]) for message in await rocketmq.messages(TOPIC))


@pytest.mark.asyncio
async def test_the_sample_delivers_a_third_a_minute_late_and_leaves_the_undecided_to_a_person(rocketmq: RocketMQ) -> None:
    await send_ten(await rocketmq.transaction_producer("senders", CountingListener()), TOPIC)
    assert await delivered(rocketmq) == []
    await rocketmq.advance(minutes=2)
    assert await delivered(rocketmq) == [1, 4, 7]
    await rocketmq.advance(minutes=20)
    states = {one.keys[0]: one.state for one in await rocketmq.decided()}
    assert [key for key, state in sorted(states.items()) if state == "discarded"] == ["KEY0", "KEY3", "KEY6", "KEY9"]


@pytest.mark.asyncio
async def test_the_sample_delivers_after_a_restart_what_it_would_have_rolled_back(rocketmq: RocketMQ) -> None:
    first = await rocketmq.transaction_producer("senders", CountingListener())
    await send_ten(first, TOPIC)
    await first.shutdown()
    await rocketmq.transaction_producer("senders", CountingListener())
    await rocketmq.advance(minutes=2)
    assert await delivered(rocketmq) == list(range(10))


@pytest.mark.asyncio
async def test_the_stored_one_keeps_its_word_after_a_lost_commit_and_a_restart(rocketmq: RocketMQ, engine: Engine) -> None:
    first = await rocketmq.transaction_producer("senders", StoringListener(engine))
    rocketmq.lose_next_decision()
    await send_ten(first, TOPIC)
    await first.shutdown()
    assert await delivered(rocketmq) == [4, 7]
    await rocketmq.transaction_producer("senders", StoringListener(engine))
    await rocketmq.advance(minutes=2)
    assert await delivered(rocketmq) == [1, 4, 7]
    assert conclude_all(engine) == 4
    await rocketmq.advance(minutes=2)
    assert await delivered(rocketmq) == [0, 1, 3, 4, 6, 7, 9]


KILLED_AFTER_ITS_SECOND_LOCAL_COMMIT = """
import asyncio, os, signal
from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session
from tutorials.recipes.official_sample import sample, stored
from rocketmq_broker.client import TransactionProducer

stored_so_far = []

def die(session):
    stored_so_far.append(session)
    if len(stored_so_far) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    listener = stored.StoringListener(create_engine(os.environ["DATABASE_URL"]))
    async with TransactionProducer("senders", listener) as producer:
        await sample.send_ten(producer, "TopicTest1234")

event.listen(Session, "after_commit", die)
asyncio.run(main())
"""


def test_what_was_stored_before_kill_9_is_delivered_by_the_next_process(rocketmq: SyncRocketMQ, engine: Engine) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.namesrv_addr, "DATABASE_URL": str(engine.url)}
    program = [sys.executable, "-c", KILLED_AFTER_ITS_SECOND_LOCAL_COMMIT]
    assert subprocess.run(program, env=environment, timeout=60).returncode == -signal.SIGKILL
    assert [one.keys for one in rocketmq.pending()] == [("KEY0",), ("KEY1",)]
    rocketmq.transaction_producer("senders", StoringListener(engine))
    rocketmq.advance(minutes=2)
    assert rocketmq.committed("KEY1").text == "Hello RocketMQ 1"


def test_ctrl_c_ends_the_program_without_a_traceback(rocketmq: SyncRocketMQ, engine: Engine) -> None:
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.namesrv_addr, "DATABASE_URL": str(engine.url)}
    command = [sys.executable, "-m", "tutorials.recipes.official_sample"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        assert program.stdout is not None
        sent = (line for line in program.stdout if "ten half messages are sent" in line)
        assert next(sent) != next(sent)
        program.send_signal(signal.SIGINT)
        output, _ = program.communicate(timeout=60)
    assert program.returncode == 130
    assert output.endswith("\nStopped.\n")
