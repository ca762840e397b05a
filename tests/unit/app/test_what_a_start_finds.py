"""Tests how a broker starts on the files of an earlier run."""

from pathlib import Path

import pytest

from rocketmq_broker.app.opened_store import correct_consumer_offsets
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.message.record import host_bytes
from rocketmq_broker.message.topics import TRANSACTION_CONSUMER_GROUP as TRANSACTIONS
from rocketmq_broker.server.transactions.transaction_notes import read_check_counts
from rocketmq_broker.store import ConsumerOffsets, MessageStore, StoreConfig
from rocketmq_broker.store.tables.config_file import ConfigFile
from rocketmq_broker.transaction.checking.check_counts import FILE_NAME

HOST = host_bytes("127.0.0.1", 10911)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"checks": {"7": "many"}}'])
def test_damaged_check_counts_cost_checks_and_no_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert read_check_counts(ConfigFile(tmp_path / FILE_NAME)) == {}


def test_check_counts_are_found_again(tmp_path: Path) -> None:
    ConfigFile(tmp_path / FILE_NAME).write({"checks": {"7": 3}})
    assert read_check_counts(ConfigFile(tmp_path / FILE_NAME)) == {7: 3}


def test_a_group_whose_offset_outlived_the_messages_does_not_miss_the_next_ones(tmp_path: Path) -> None:
    config = StoreConfig(root=tmp_path, store_host=HOST, commit_log_segment_size=4096, index_slots=16, index_entries=64)
    store = MessageStore.open(config)
    for body in (b"1", b"2"):
        store.append(
            InnerMessage(
                topic=b"orders", queue_id=0, body=body, properties=b"", flag=0, sys_flag=0, born_timestamp=1, born_host=HOST
            ),
            1,
        )
    store.publish(store.write())
    offsets = ConsumerOffsets(config.config_directory)
    for group, queue_id, offset in (
        ("ahead", 0, 5),
        ("ahead", 1, 9),
        ("behind", 0, 1),
        ("at the end", 0, 2),
        (TRANSACTIONS, 0, 5),
    ):
        offsets.commit(group, "orders", queue_id, offset)

    correct_consumer_offsets(offsets, store)

    assert offsets.as_json() == {
        "orders@ahead": {0: 2, 1: 0},
        "orders@behind": {0: 1},
        "orders@at the end": {0: 2},
        f"orders@{TRANSACTIONS}": {0: 5},
    }
    store.close()
