from pathlib import Path

import pytest

from rocketmq_broker.store import ConsumerOffsets, DelayOffsets
from rocketmq_broker.store.memory_files import MemoryFiles
from rocketmq_broker.testing.disk import Disk


def test_a_group_without_offsets_in_a_topic_takes_none_away_from_another(tmp_path: Path) -> None:
    offsets = ConsumerOffsets(tmp_path)
    offsets.commit("a", "orders", 0, 5)
    offsets.commit("b", "orders", 0, 7)
    offsets.clone("nobody", "b", "orders")
    assert offsets.of_topic("b", "orders") == {0: 7}
    offsets.clone("a", "b", "orders")
    offsets.commit("a", "orders", 0, 6)
    assert offsets.of_topic("b", "orders") == {0: 5}


def test_an_empty_table_is_written_as_rocketmq_writes_it_and_read_again(tmp_path: Path) -> None:
    ConsumerOffsets(tmp_path).persist()
    assert (tmp_path / "consumerOffset.json").read_text() == '{\n\t"offsetTable":{}\n}'
    again = ConsumerOffsets(tmp_path)
    again.load()
    assert again.as_json() == {}
    assert again.complaint is None


def test_what_was_wrong_with_the_offsets_of_the_delay_levels_is_said(tmp_path: Path) -> None:
    offsets = DelayOffsets(tmp_path)
    for offset in (3, 4):
        offsets.put(1, offset)
        offsets.persist()
    (tmp_path / "delayOffset.json").write_text("{")
    again = DelayOffsets(tmp_path)
    again.load()
    assert again.get(1) == 3
    assert again.complaint is not None
    assert "delayOffset.json" in again.complaint


def test_a_table_that_did_not_change_leaves_the_backup_as_it_was(tmp_path: Path) -> None:
    offsets = ConsumerOffsets(tmp_path)
    for offset in (1, 2, 2):
        offsets.commit("a", "orders", 0, offset)
        offsets.persist()
    assert '"orders@a":{0:1' in (tmp_path / "consumerOffset.json.bak").read_text()


def test_offsets_are_to_be_written_when_they_changed_or_their_file_is_gone(tmp_path: Path) -> None:
    offsets = ConsumerOffsets(tmp_path)
    offsets.commit("a", "orders", 0, 1)
    assert offsets.is_to_be_written
    offsets.persist()
    offsets.commit("a", "orders", 0, 1)
    assert not offsets.is_to_be_written
    for change in (
        lambda: offsets.commit("a", "orders", 0, 2),
        lambda: offsets.clone("a", "b", "orders"),
        lambda: offsets.remove_group("b"),
        lambda: offsets.remove_topic("orders"),
        (tmp_path / "consumerOffset.json").unlink,
    ):
        change()
        assert offsets.is_to_be_written
        offsets.persist()
        assert not offsets.is_to_be_written
    assert (tmp_path / "consumerOffset.json").exists()


def test_offsets_that_the_disk_refused_are_still_to_be_written(tmp_path: Path) -> None:
    files = Disk(MemoryFiles())
    offsets = ConsumerOffsets(tmp_path, files)
    offsets.commit("a", "orders", 0, 1)
    files.is_full = True
    with pytest.raises(OSError, match="No space left"):
        offsets.persist()
    assert offsets.is_to_be_written
    files.is_full = False
    offsets.persist()
    assert not offsets.is_to_be_written


def test_a_table_that_did_not_change_is_read_and_written_no_more(tmp_path: Path) -> None:
    files = MemoryFiles()
    offsets = DelayOffsets(tmp_path, files)
    offsets.put(1, 3)
    offsets.persist()
    reads, writes = files.reads, files.writes
    offsets.persist()
    assert (files.reads, files.writes) == (reads, writes)
    files.unlink(tmp_path / "delayOffset.json")
    offsets.persist()
    assert files.size(tmp_path / "delayOffset.json")


def test_the_offsets_are_counted_and_found_by_group_and_topic(tmp_path: Path) -> None:
    offsets = ConsumerOffsets(tmp_path)
    for group, topic, queue_id in (("a", "orders", 0), ("a", "orders", 1), ("a", "credits", 0), ("b", "orders", 0)):
        offsets.commit(group, topic, queue_id, 1)
    offsets.commit("a", "orders", 0, 2)
    offsets.clone("a", "c", "orders")
    offsets.persist()
    again = ConsumerOffsets(tmp_path)
    again.load()
    for table in (offsets, again):
        assert (table.count, table.topics_of("a"), table.groups_of("orders")) == (6, {"orders", "credits"}, {"a", "b", "c"})
        assert [table.count_of(group) for group in ("a", "b", "c", "d")] == [3, 1, 2, 0]
        table.remove_topic("orders")
        assert (table.count, table.topics_of("a"), table.groups_of("orders")) == (1, {"credits"}, set())
        assert [table.count_of(group) for group in ("a", "b", "c")] == [1, 0, 0]
        table.remove_group("a")
        assert (table.count, table.topics_of("a"), table.as_json()) == (0, set(), {})
