"""Tests the dump of each thread's stack, in the format of RocketMQ's tools."""

import threading

import pytest

from rocketmq_broker.client.push.operators import running_info as module
from rocketmq_broker.client.push.operators.running_info import thread_dump


def parked(is_parked: threading.Event, may_go: threading.Event) -> None:
    is_parked.set()
    may_go.wait(60)


def test_each_thread_is_named_with_its_state_and_its_calls_the_innermost_first() -> None:
    is_parked, may_go = threading.Event(), threading.Event()
    threads = [threading.Thread(target=parked, args=(is_parked, may_go), name=f"parked-{number}") for number in range(2)]
    for thread in threads:
        thread.start()
    is_parked.wait(60)
    try:
        dump = thread_dump()
    finally:
        may_go.set()
        for thread in threads:
            thread.join()
    blocks = [block.split("\n") for block in dump.split("\n\n")]
    heads = [block[0] for block in blocks]
    assert len(heads) == len({head.split("TID: ")[1] for head in heads}) >= 3
    assert all(head.endswith("STATE: RUNNING") for head in heads)
    (calls,) = (block[1:] for block in blocks if block[0].startswith("parked-1 "))
    assert all(call.startswith("parked-1 ") for call in calls)
    names = [call.split()[1].partition("(")[0] for call in calls]
    assert names.index("wait") < names.index("parked") < names.index("run")


def test_a_dump_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CHARACTERS", 100)
    assert len(thread_dump()) == 100
