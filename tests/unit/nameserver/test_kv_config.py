"""Tests the name server's key-value configuration."""

from functools import partial
from pathlib import Path

import pytest

from rocketmq_broker.nameserver.kv_config import KVConfig


def test_what_was_put_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "namesrv" / "kvConfig.json"
    KVConfig(path).put("ORDER_TOPIC_CONFIG", "orders", "broker-a:4")
    again = KVConfig(path)
    assert again.get("ORDER_TOPIC_CONFIG", "orders") == "broker-a:4"
    assert again.namespace("ORDER_TOPIC_CONFIG") == {"orders": "broker-a:4"}
    assert path.read_bytes() == b'{"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"broker-a:4"}}}'


def test_what_was_deleted_stays_away(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    config = KVConfig(path)
    config.put("space", "key", "value")
    config.delete("space", "key")
    config.delete("space", "never there")
    assert KVConfig(path).get("space", "key") is None


def test_an_unknown_namespace_is_none() -> None:
    assert KVConfig(None).namespace("space") is None
    assert KVConfig(None).get("space", "key") is None


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_change_that_does_not_reach_the_disk_is_no_change(tmp_path: Path, is_deleted: bool) -> None:
    path = tmp_path / "kvConfig.json"
    config = KVConfig(path)
    config.put("space", "key", "value")
    (tmp_path / "kvConfig.json.tmp").mkdir()  # where the new file would be written
    change = partial(config.delete, "space", "key") if is_deleted else partial(config.put, "space", "key", "other")
    with pytest.raises(OSError, match=r"kvConfig\.json\.tmp"):
        change()
    assert config.get("space", "key") == "value"
    assert KVConfig(path).get("space", "key") == "value"


def test_a_file_that_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.write_text('{"configTable": [1]}')
    with pytest.raises(ValueError, match="object"):
        KVConfig(path)


def test_an_empty_file_is_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "kvConfig.json"
    path.touch()
    assert KVConfig(path).namespace("space") is None


def test_without_a_file_values_are_kept_in_memory() -> None:
    config = KVConfig(None)
    config.put("space", "key", "value")
    assert config.namespace("space") == {"key": "value"}
    config.delete("space", "key")
    assert config.get("space", "key") is None
