"""Tests of pulls from a broker that is away."""

import pytest

from demo.ports import free_ports
from pipelines.sources.logs.queue_ranges import QueueRange, pull
from rocketmq_commitlog.commit_log import UnreadableStore


def test_a_broker_that_is_away_is_an_unreadable_store() -> None:
    (port,) = free_ports(1)
    with pytest.raises(UnreadableStore, match=f"127.0.0.1:{port}"):
        next(pull(f"127.0.0.1:{port}", QueueRange("orders", 0, 0, 1)))
