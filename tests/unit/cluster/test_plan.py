from pathlib import Path

import msgspec
import pytest

from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.plan import ClusterPlan, FolderFacts, plan_cluster
from rocketmq_broker.config import BrokerSettings

SETTINGS = BrokerSettings(store_path_root_dir="/data/cluster")


def planned(count: int, *stores: str, taken_away: tuple[str, ...] = (), **changes: object) -> ClusterPlan:
    settings = msgspec.structs.replace(SETTINGS, **changes)
    return plan_cluster(settings, count, FolderFacts(frozenset(stores), frozenset(taken_away)))


def test_each_broker_has_a_name_ports_and_a_store_of_its_own() -> None:
    plan = planned(3)
    assert [broker.name for broker in plan.brokers] == ["broker-a", "broker-b", "broker-c"]
    assert [broker.settings.listen_port for broker in plan.brokers] == [10911, 10921, 10931]
    assert [broker.settings.metrics_prom_exporter_port for broker in plan.brokers] == [5557, 5558, 5559]
    assert [broker.settings.store_root for broker in plan.brokers] == [Path(f"/data/cluster/broker-{x}") for x in "abc"]
    assert all(broker.is_new and not broker.is_leaving for broker in plan.brokers)


def test_all_brokers_register_with_the_cluster_s_name_server() -> None:
    plan = planned(2, namesrv_listen_port=9000)
    assert plan.has_name_server
    assert {broker.settings.namesrv_addr for broker in plan.brokers} == {"127.0.0.1:9000"}


def test_a_cluster_that_is_told_of_name_servers_starts_none() -> None:
    plan = planned(2, namesrv_addr="one:9876;two:9876")
    assert not plan.has_name_server
    assert {broker.settings.namesrv_addr for broker in plan.brokers} == {"one:9876;two:9876"}


def test_brokers_are_named_after_the_brokername_of_the_settings() -> None:
    assert [broker.name for broker in planned(2, broker_name="shop").brokers] == ["shop-a", "shop-b"]
    assert [broker.name for broker in planned(2, broker_name="shop-a").brokers] == ["shop-a", "shop-b"]


def test_a_commit_log_elsewhere_is_divided_as_well() -> None:
    plan = planned(2, store_path_commit_log="/fast")
    assert [broker.settings.store_path_commit_log for broker in plan.brokers] == ["/fast/broker-a", "/fast/broker-b"]


def test_port_0_stays_0() -> None:
    assert {broker.settings.listen_port for broker in planned(2, listen_port=0).brokers} == {0}


def test_a_broker_beyond_the_number_leaves_and_takes_no_new_messages() -> None:
    plan = planned(1, "broker-a", "broker-b")
    first, second = plan.brokers
    assert (first.is_leaving, first.settings.broker_permission) == (False, 6)
    assert (second.is_leaving, second.settings.broker_permission) == (True, 4)
    assert (second.number, second.settings.listen_port) == (2, 10921)


def test_a_broker_that_was_taken_away_rests() -> None:
    plan = planned(1, "broker-a", "broker-b", taken_away=("broker-b",))
    assert [broker.name for broker in plan.brokers] == ["broker-a"]
    assert plan.removed == ("broker-b",)


def test_a_broker_that_was_taken_away_comes_back_with_its_store() -> None:
    back = planned(2, "broker-a", "broker-b", taken_away=("broker-b",)).brokers[1]
    assert (back.is_rejoining, back.is_new, back.settings.broker_permission) == (True, False, 6)


@pytest.mark.parametrize(
    ("count", "facts", "changes", "refusal"),
    [
        (0, FolderFacts(), {}, "--brokers must be between 1 and 26, not 0"),
        (27, FolderFacts(), {}, "--brokers must be between 1 and 26, not 27"),
        (2, FolderFacts(is_store=True), {}, "contains the store of a single broker: stop it and move its store to .*/broker-a"),
        (2, FolderFacts(frozenset({"broker-a", "shop-a"})), {}, "stores of brokers with other names: shop-a"),
        (2, FolderFacts(), {"namesrv_listen_port": 0}, "namesrvListenPort must not be 0"),
        (3, FolderFacts(), {"listen_port": 65530}, "port of broker-b too high: 65540, at most 65535"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(count: int, facts: FolderFacts, changes: dict[str, int], refusal: str) -> None:
    with pytest.raises(ClusterMistake, match=refusal):
        plan_cluster(msgspec.structs.replace(SETTINGS, **changes), count, facts)
