"""Tests that new topics spread to all brokers of a cluster.

Topic names that only a program outside the cluster has registered with the name server have no effect.
"""

import pytest

from rocketmq_broker.__main__ import print_cluster_line
from rocketmq_broker.cluster import spreading
from rocketmq_broker.cluster.spreading import TopicSpreading
from rocketmq_broker.message.configs import TopicConfig

STRANGE = "a\x1b[2J\nb"


class Cluster:
    """Two brokers, of which the first has a topic, and a name server with further topic names.

    A program outside the cluster has registered these further names.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, registered: set[str]) -> None:
        self.tables = {"first": {"orders": TopicConfig("orders")}, "second": dict[str, TopicConfig]()}
        self.registered = registered
        monkeypatch.setattr(spreading, "opened_session", lambda target: self)
        monkeypatch.setattr(spreading, "_topics_at_name_server", self._names)
        monkeypatch.setattr(spreading, "_topics_at", self._table)
        monkeypatch.setattr(spreading, "_create", self._make)
        self.brokers = ["name server"]

    async def __aenter__(self) -> "Cluster":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def _names(self, name_server: str) -> set[str]:
        return self.registered

    async def _table(self, address: str) -> dict[str, TopicConfig]:
        return self.tables[address]

    async def _make(self, config: TopicConfig, address: str) -> None:
        self.tables[address][config.topic_name] = config


async def test_a_topic_that_no_broker_of_the_cluster_has_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic is spread once a broker of the cluster has it.

    A program outside the cluster that registers the name earlier does not prevent this.
    """
    cluster = Cluster(monkeypatch, {"orders", STRANGE, "credits"})
    known = TopicSpreading(set(), frozenset())
    assert await known.spread("name server", ["first", "second"]) == ["orders"]
    assert set(cluster.tables["second"]) == {"orders"}
    cluster.tables["second"]["credits"] = TopicConfig("credits")
    assert await known.spread("name server", ["first", "second"]) == ["credits"]
    assert set(cluster.tables["first"]) == {"orders", "credits"}


async def test_a_topic_that_an_operator_deletes_at_one_broker_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, {"orders"})
    known = TopicSpreading(set(), frozenset())
    assert await known.spread("name server", ["first", "second"]) == ["orders"]
    del cluster.tables["second"]["orders"]
    assert await known.spread("name server", ["first", "second"]) == []
    assert set(cluster.tables["second"]) == set()


def test_a_name_with_control_characters_is_printed_with_escapes_and_no_line_is_endless(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_cluster_line("cluster", f"new topics created on all brokers: {STRANGE}")
    print_cluster_line("cluster", "x" * 100_000)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "cluster  | new topics created on all brokers: a\\x1b[2J\\nb"
    assert len(second) < 10_000
