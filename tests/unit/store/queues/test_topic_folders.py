"""Tests topics whose names are invalid as folders or differ only in case."""

from pathlib import Path

import pytest

from rocketmq_broker.platform.files import ignores_case, is_reserved
from rocketmq_broker.store import DamagedStore, IllegalMessage, MessageStore
from rocketmq_broker.store.memory_files import MemoryFiles
from tests.unit.store.conftest import bodies, crash, delete_topic, send, small_config

ROOT = Path("/store")


class CaselessFiles(MemoryFiles):
    """A file system that ignores case and reserves names, as Windows does."""

    def ignores_case(self, path: Path) -> bool:
        assert self.size(path) is not None
        return True

    def is_reserved(self, path: Path) -> bool:
        return path.name == "CON"


def test_topics_that_differ_in_more_than_case_are_stored() -> None:
    store = MessageStore.open(small_config(ROOT), CaselessFiles())
    send(store, b"1", topic=b"orders")
    send(store, b"2", topic=b"orders", queue_id=1)
    send(store, b"3", topic=b"credits")
    assert bodies(store, b"orders") == [b"1"]


def test_a_topic_whose_folder_is_that_of_another_topic_is_refused() -> None:
    store = MessageStore.open(small_config(ROOT), CaselessFiles())
    send(store, b"1", topic=b"orders")
    reason = (
        "topic Orders cannot be stored beside topic orders: the names of their folders differ only in case, "
        "which this file system ignores"
    )
    for queue_id in (0, 1):
        with pytest.raises(IllegalMessage, match=reason):
            send(store, b"2", topic=b"Orders", queue_id=queue_id)
    with pytest.raises(IllegalMessage, match="topic ORDERS cannot be stored beside topic orders"):
        store.check_folder("ORDERS")
    with pytest.raises(IllegalMessage, match="topic Credits cannot be stored beside topic credits"):
        store.check_folder("Credits", ["credits"])
    store.check_folder("credits", ["credits"])
    delete_topic(store, b"orders")
    send(store, b"3", topic=b"Orders")
    assert bodies(store, b"Orders") == [b"3"]


def test_a_topic_with_a_reserved_name_is_refused() -> None:
    store = MessageStore.open(small_config(ROOT), CaselessFiles())
    with pytest.raises(IllegalMessage, match="topic CON cannot be stored: this system does not accept a folder of this name"):
        send(store, b"1", topic=b"CON")


def test_a_store_of_a_system_that_holds_them_apart_is_not_recovered() -> None:
    files = MemoryFiles()
    store = MessageStore.open(small_config(ROOT), files)
    send(store, b"1", topic=b"orders")
    send(store, b"2", topic=b"Orders")
    crash(store)
    with pytest.raises(DamagedStore, match="topic Orders cannot be stored beside topic orders"):
        MessageStore.open(small_config(ROOT), CaselessFiles(files))
    again = MessageStore.open(small_config(ROOT), files)
    assert (bodies(again, b"orders"), bodies(again, b"Orders")) == ([b"1"], [b"2"])


def test_the_file_system_is_asked_whether_it_ignores_case(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    is_found = (tmp_path / "LOCK").exists()
    assert ignores_case(tmp_path / "lock") is is_found
    if not is_found:
        (tmp_path / "LOCK").touch()
        assert not ignores_case(tmp_path / "lock")
        (tmp_path / "LOCK").unlink()
        (tmp_path / "LOCK").hardlink_to(tmp_path / "lock")
        assert ignores_case(tmp_path / "lock")
    assert not is_reserved(tmp_path / "orders")
