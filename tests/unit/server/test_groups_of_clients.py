"""Tests the producers and consumers that heartbeats report."""

import pytest

from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, SubscriptionData
from rocketmq_broker.server.clients.client_channel import CHANNEL_EXPIRES_MS, ClientChannel
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.producer_groups import ProducerGroups

NOW_MS = 1_000_000


def channel(connection: str, now_ms: int = NOW_MS) -> ClientChannel:
    return ClientChannel(connection, f"id of {connection}", "JAVA", 407, now_ms)


def consumer(*topics: str, version: int = 1, expression: str = "*") -> ConsumerData:
    subscriptions = [SubscriptionData(topic=topic, sub_string=expression, sub_version=version) for topic in topics]
    return ConsumerData(group_name="g", subscription_data_set=subscriptions)


class Groups(ConsumerGroups):
    """Consumer groups that record which members were told of a change."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[str]]] = []
        super().__init__(lambda group, connections: self.told.append((group, connections)))


def test_every_member_is_told_when_one_joins() -> None:
    groups = Groups()
    groups.register(consumer("orders"), channel("one"))
    groups.register(consumer("orders"), channel("two"))
    assert groups.told == [("g", ["one"]), ("g", ["one", "two"])]


def test_a_heartbeat_that_says_nothing_new_tells_nobody() -> None:
    groups = Groups()
    groups.register(consumer("orders"), channel("one"))
    groups.register(consumer("orders"), channel("one", NOW_MS + 30_000))
    assert len(groups.told) == 1


def test_those_that_stay_are_told_when_one_leaves_or_its_connection_closes() -> None:
    groups = Groups()
    for name in ("one", "two", "three"):
        groups.register(consumer("orders"), channel(name))
    groups.told.clear()
    groups.unregister("g", "one")
    groups.forget("two")
    assert groups.told == [("g", ["two", "three"]), ("g", ["three"])]


def test_a_group_without_members_is_forgotten_and_nobody_told() -> None:
    groups = Groups()
    groups.register(consumer("orders"), channel("one"))
    groups.told.clear()
    groups.forget("one")
    groups.forget("one")
    assert groups.find("g") is None
    assert groups.told == []


def test_a_quiet_group_is_not_told() -> None:
    groups = Groups()
    groups.register(consumer("orders"), channel("one"), notify=False)
    assert groups.told == []


def test_of_two_subscriptions_the_one_with_the_higher_version_counts() -> None:
    groups = Groups()
    groups.register(consumer("orders", version=5, expression="A"), channel("one"))
    groups.register(consumer("orders", version=4, expression="B"), channel("two"))
    group = groups.find("g")
    assert group is not None
    assert group.subscriptions["orders"].sub_string == "A"
    groups.register(consumer("orders", version=6, expression="C"), channel("two"))
    assert group.subscriptions["orders"].sub_string == "C"


def test_a_topic_that_a_member_dropped_is_no_longer_subscribed() -> None:
    groups = Groups()
    groups.register(consumer("orders", "credits"), channel("one"))
    groups.register(consumer("orders"), channel("one"))
    assert len(groups.told) == 2
    assert groups.subscribers("credits") == []
    assert groups.subscribers("orders") == ["g"]


def test_members_expire_two_minutes_after_their_last_heartbeat() -> None:
    consumers, producers = Groups(), ProducerGroups()
    consumers.register(consumer("orders"), channel("one"))
    producers.register("p", channel("two"))
    for groups, connection in ((consumers, "one"), (producers, "two")):
        assert groups.expired(NOW_MS + CHANNEL_EXPIRES_MS) == []
        assert groups.expired(NOW_MS + CHANNEL_EXPIRES_MS + 1) == [connection]


def test_producers_come_and_go() -> None:
    groups = ProducerGroups()
    groups.register("p", channel("one"))
    groups.register("p", channel("two"))
    groups.register("q", channel("two"))
    assert groups.connections("p") == ["one", "two"]
    groups.forget("two")
    assert groups.connections("p") == ["one"]
    assert groups.channels("q") is None
    groups.unregister("p", "one")
    assert groups.all_channels() == {}


def test_a_producer_is_found_by_its_client_id_until_it_leaves_its_last_group() -> None:
    groups = ProducerGroups()
    groups.register("p", channel("one"))
    groups.register("q", channel("one"))
    groups.unregister("p", "one")
    assert groups.connection_of("id of one") == "one"
    groups.unregister("q", "one")
    assert groups.connection_of("id of one") is None


def test_of_a_clients_connections_the_newest_is_found() -> None:
    groups = ProducerGroups()
    groups.register("p", ClientChannel("old", "client", "JAVA", 407, NOW_MS))
    groups.register("p", ClientChannel("new", "client", "JAVA", 407, NOW_MS))
    groups.register("p", ClientChannel("old", "client", "JAVA", 407, NOW_MS))
    assert groups.connection_of("client") == "new"
    groups.forget("old")
    assert groups.connection_of("client") == "new"


def test_a_client_whose_newest_connection_closed_is_found_by_the_next_heartbeat_of_another() -> None:
    groups = ProducerGroups()
    groups.register("p", ClientChannel("old", "client", "JAVA", 407, NOW_MS))
    groups.register("p", ClientChannel("new", "client", "JAVA", 407, NOW_MS))
    groups.forget("new")
    groups.register("p", ClientChannel("old", "client", "JAVA", 407, NOW_MS))
    assert groups.connection_of("client") == "old"


@pytest.mark.parametrize("groups_named", [("p", "q"), ("p", "p")])
def test_of_a_connection_that_names_several_clients_none_is_left_when_it_closes(groups_named: tuple[str, str]) -> None:
    groups = ProducerGroups()
    for group, client_id in zip(groups_named, ("one", "two"), strict=True):
        groups.register(group, ClientChannel("connection", client_id, "JAVA", 407, NOW_MS))
    assert groups.connection_of("two") == "connection"
    groups.forget("connection")
    assert (groups.connection_of("one"), groups.connection_of("two")) == (None, None)
