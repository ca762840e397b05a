"""Tests of the composition root: notifications of arrivals, correction of offsets, metric labels, and store settings."""

import errno
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from rocketmq_broker.app import Broker, StartError
from rocketmq_broker.app.metrics import common_labels
from rocketmq_broker.app.opened_store import correct_consumer_offsets, store_config
from rocketmq_broker.app.ports import cannot_listen, listening
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.message.topics import TRANSACTION_CONSUMER_GROUP
from rocketmq_broker.server.durability.arrivals import Arrivals
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.store import ConsumerOffsets, MessageStore

IDENTITY = BrokerIdentity(cluster="c", name="broker-a", broker_id=0, host="127.0.0.1", port=10911)


def test_every_listener_hears_of_an_arrival_and_the_counter_its_size() -> None:
    heard: list[tuple[object, ...]] = []
    arrivals = Arrivals(
        lambda *where: heard.append(("one", *where)),
        lambda *where: heard.append(("two", *where)),
        counter=lambda *where: heard.append(("count", *where)),
    )
    arrivals(b"orders", 3, 9, 100)
    assert heard == [("one", b"orders", 3, 9), ("two", b"orders", 3, 9), ("count", b"orders", 3, 9, 100)]


def test_a_listener_that_fails_concerns_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    def failing(*_: object) -> None:
        raise LookupError("no such queue")

    heard: list[int] = []
    Arrivals(failing, lambda topic, queue, offset: heard.append(offset), counter=failing)(b"orders", 3, 9, 100)
    assert heard == [9]
    assert caplog.text.count("a listener failed for new messages in topic orders") == 2


def test_labels_of_metrics_are_rocketmqs_and_the_settings_add_to_them() -> None:
    settings = BrokerSettings(broker_name="broker-a", broker_cluster_name="c", metrics_label="zone:a,rack:7")
    assert common_labels(settings) == {"zone": "a", "rack": "7", "cluster": "c", "node_type": "broker", "node_id": "broker-a"}
    assert common_labels(BrokerSettings(broker_name="b", broker_cluster_name="c")) == {
        "cluster": "c",
        "node_type": "broker",
        "node_id": "b",
    }


def store_at(path: Path) -> MessageStore:
    settings = BrokerSettings(store_path_root_dir=str(path), max_hash_slot_num=100, max_index_num=400)
    return MessageStore.open(store_config(settings, IDENTITY))


def test_a_group_that_is_said_to_be_ahead_of_its_queue_is_led_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, offsets = store_at(tmp_path / "store"), ConsumerOffsets(tmp_path / "config")
    offsets.commit("credits", "orders", 0, 5)
    offsets.commit("auditors", "orders", 0, 0)
    offsets.commit(TRANSACTION_CONSUMER_GROUP, "RMQ_SYS_TRANS_HALF_TOPIC", 0, 5)
    with caplog.at_level(logging.WARNING):
        correct_consumer_offsets(offsets, store)
    store.close()
    assert offsets.as_json() == {
        "orders@credits": {0: 0},
        "orders@auditors": {0: 0},
        f"RMQ_SYS_TRANS_HALF_TOPIC@{TRANSACTION_CONSUMER_GROUP}": {0: 5},
    }
    assert caplog.text.count("to the queue's end") == 1
    assert "reset the offset of group credits in topic orders, queue 0, from 5 to the queue's end 0" in caplog.text


def test_percentages_of_the_settings_are_ratios_of_the_store(tmp_path: Path) -> None:
    settings = BrokerSettings(
        store_path_root_dir=str(tmp_path),
        disk_max_used_space_ratio=70,
        disk_space_clean_forcibly_ratio=80,
        disk_space_warning_level_ratio=90,
    )
    config = store_config(settings, IDENTITY)
    assert (config.disk_max_used_ratio, config.disk_clean_ratio, config.disk_full_ratio) == (0.7, 0.8, 0.9)
    assert config.commit_log_path is None


def test_a_commit_log_elsewhere_may_be_below_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = BrokerSettings(store_path_root_dir=str(tmp_path), store_path_commit_log="~/log")
    assert store_config(settings, IDENTITY).commit_log_path == tmp_path / "log"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EADDRINUSE, "Address already in use"), "the port is in use"),
        (OSError(errno.EACCES, "Permission denied"), "Permission denied"),
        (OSError("no number"), "no number"),
    ],
)
async def test_an_address_that_cannot_be_had_is_named_with_its_property(error: OSError, reason: str) -> None:
    async def listen() -> None:
        raise error

    with pytest.raises(StartError, match=rf"^cannot listen on h:1 \(listenPort\): {reason}$"):
        await listening(listen, "h", 1, "listenPort")
    assert str(cannot_listen(error, "h", 1, "p")) == f"cannot listen on h:1 (p): {reason}"


async def test_a_broker_that_never_started_can_be_stopped(new_broker: Callable[..., Broker]) -> None:
    await new_broker().stop()


async def test_a_start_that_fails_leaves_nothing_behind(new_broker: Callable[..., Broker], tmp_path: Path) -> None:
    no_name = "x" * 70
    with pytest.raises(StartError, match=f"brokerIP1={no_name}: "):
        await new_broker(broker_ip1=no_name).start()
    assert not (tmp_path / "abort").exists()


async def test_a_broker_says_where_it_is_once_it_has_started(new_broker: Callable[..., Broker], stack: AsyncExitStack) -> None:
    broker = new_broker()
    assert broker.metrics_url is None
    await broker.start()
    stack.push_async_callback(broker.stop)
    (name_server,) = broker.name_servers
    assert name_server.startswith("127.0.0.1:")
    assert broker.identity.address == f"127.0.0.1:{broker.identity.port}"
    assert broker.identity.port > 0


async def test_stopping_twice_is_stopping_once(new_broker: Callable[..., Broker], tmp_path: Path) -> None:
    broker = new_broker()
    await broker.start()
    assert (tmp_path / "abort").exists()
    await broker.stop()
    assert not (tmp_path / "abort").exists()
    await broker.stop()
