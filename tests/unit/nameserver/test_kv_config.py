"""Names and values on the name server."""

from pathlib import Path

from broker.nameserver.kv_config import KVConfig


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
