from pathlib import Path

import msgspec
import pytest

from rocketmq_broker.cluster.errors import ClusterMistake
from rocketmq_broker.cluster.folder import locked, mark_removed, read_folder, refuse_a_single_broker, unmark, write_broker_conf
from rocketmq_broker.cluster.plan import FolderFacts
from rocketmq_broker.config import BrokerSettings, load_settings


def test_a_folder_tells_its_stores_and_who_was_taken_away(tmp_path: Path) -> None:
    (tmp_path / "broker-a" / "commitlog").mkdir(parents=True)
    (tmp_path / "broker-b" / "config").mkdir(parents=True)
    (tmp_path / "namesrv").mkdir()
    mark_removed(tmp_path, "broker-b", "drained")
    assert read_folder(tmp_path) == FolderFacts(frozenset({"broker-a", "broker-b"}), frozenset({"broker-b"}))
    unmark(tmp_path, "broker-b")
    assert read_folder(tmp_path).removed == frozenset()


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_folder(tmp_path / "absent") == FolderFacts()


def test_a_store_of_a_single_broker_is_seen(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert read_folder(tmp_path).is_store


def test_one_supervisor_holds_a_folder(tmp_path: Path) -> None:
    again = pytest.raises(ClusterMistake, match="another cluster is running in")
    with locked(tmp_path / "cluster"), again, locked(tmp_path / "cluster"):
        pass
    with locked(tmp_path / "cluster"):
        pass


def test_a_single_broker_does_not_begin_with_an_empty_store_in_a_cluster_s_folder(tmp_path: Path) -> None:
    refuse_a_single_broker(tmp_path)
    with locked(tmp_path):
        pass
    with pytest.raises(ClusterMistake, match="contains the stores of a cluster: start with --brokers"):
        refuse_a_single_broker(tmp_path)


def test_a_broker_reads_back_the_settings_that_were_written_for_it(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        BrokerSettings(), broker_name="broker-b", store_path_root_dir="/a b\\c", tls_server_key_password="a=b", trace_on=False
    )
    path = write_broker_conf(tmp_path, settings)
    assert path.stat().st_mode & 0o777 == 0o600
    loaded = load_settings(path)
    assert (loaded.settings, loaded.warnings) == (settings, ())
