"""Tests the deletion of expired files: the log entries, and the result when a file cannot be deleted."""

import asyncio
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.__main__ import STORE_CLEANER_LOGGER
from rocketmq_broker.server.durability import store_cleaner
from rocketmq_broker.server.durability.store_cleaner import StoreCleaner
from rocketmq_broker.store import MessageStore
from rocketmq_broker.store.files import OsFileSystem
from tests.unit.store.conftest import NOW, send, small_config

HOUR = 3_600_000


class Disk(OsFileSystem):
    """A real file system whose used space the test sets."""

    used = 0.5

    def used_ratio(self, path: Path) -> float:
        return self.used


class Broker:
    """A store with twelve segments of one message each, one hour apart."""

    def __init__(self, root: Path, **settings: object) -> None:
        self.disk = Disk()
        self.store = MessageStore.open(small_config(root, **settings), self.disk)
        for number in range(12):
            send(self.store, b"x" * 700, store_timestamp=NOW + number * HOUR)
        self.now_ms = NOW
        self.asked: list[int] = []
        self.needed_from: int | None = None
        self.cleaner = StoreCleaner(self.store, asyncio.Lock(), needed_from=self._needed, clock=lambda: self.now_ms)
        self.log = root / "commitlog"

    def _needed(self, begun_after_ms: int) -> int | None:
        self.asked.append(begun_after_ms)
        return self.needed_from

    def at(self, now_ms: int, used: float = 0.8) -> "Broker":
        self.now_ms, self.disk.used = now_ms, used
        return self


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.store.close()


@pytest.fixture(autouse=True)
def as_operators_see_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    caplog.set_level(logging.INFO, STORE_CLEANER_LOGGER)


def test_the_logger_whose_deletions_operators_see_is_the_cleaners() -> None:
    assert store_cleaner.__name__ == STORE_CLEANER_LOGGER


async def test_what_has_expired_is_deleted_and_operators_are_told(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    await broker.at(NOW + 75 * HOUR).cleaner.clean()
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.getMessage() == (
        "deleting 2 expired messages in 2 commit log segments (fileReservedTime=72): 00000000000000000000 to 00000000000000001024"
    )
    assert sorted(os.listdir(broker.log))[0] == "00000000000000002048"
    assert broker.store.min_offset(b"orders", 0) == 2


async def test_what_has_not_expired_stays_on_a_disk_86_percent_full(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    await broker.at(NOW + 12 * HOUR, used=0.86).cleaner.clean()
    assert (len(os.listdir(broker.log)), caplog.records) == (12, [])


async def test_what_goes_before_its_time_is_a_warning_with_number_and_age(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(tmp_path, is_clean_forcible=True)
    await broker.at(NOW + 11 * HOUR, used=0.86).cleaner.clean()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        "deleting 10 messages in 10 commit log segments (00000000000000000000 to 00000000000000009216), 10 of them before "
        "they expired: the disk is 86% full and cleanFileForciblyEnable=true. The youngest message was stored 60 min ago"
    )
    broker.store.close()


async def test_what_pending_transactions_need_is_kept_for_twice_the_time_that_files_are(broker: Broker) -> None:
    broker.needed_from = 1024
    await broker.at(NOW + 96 * HOUR).cleaner.clean()
    assert broker.asked == [NOW + 96 * HOUR - 144 * HOUR]
    assert sorted(os.listdir(broker.log))[0] == "00000000000000001024"


async def test_entering_and_leaving_the_state_of_a_full_disk_is_told_once(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    for used in (0.5, 0.91, 0.92, 0.93, 0.8, 0.8):
        await broker.at(NOW, used).cleaner.clean()
    assert [record.getMessage() for record in caplog.records] == [
        "messages are refused: the disk is 91% full; new messages are refused until there is space (diskSpaceWarningLevelRatio)",
        "messages are accepted again; the disk is 80% full",
    ]


async def test_an_operator_may_ask_at_any_hour(broker: Broker) -> None:
    hour = 4 if time.localtime(NOW // 1000).tm_hour != 4 else 5
    while time.localtime(broker.now_ms // 1000).tm_hour != hour + 1:
        broker.now_ms += HOUR
    broker.at(broker.now_ms + 96 * HOUR, used=0.1)
    await broker.cleaner.clean()
    assert len(os.listdir(broker.log)) == 12
    broker.cleaner.request_cleaning()
    await broker.cleaner.clean()
    assert len(os.listdir(broker.log)) < 12
    before = len(os.listdir(broker.log))
    await broker.cleaner.clean()
    assert len(os.listdir(broker.log)) == before


async def test_a_segment_that_cannot_be_deleted_keeps_those_after_it_and_is_tried_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.at(NOW + 75 * HOUR)

    def refuse(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        with pytest.raises(PermissionError):
            await broker.cleaner.clean()
    assert len(os.listdir(broker.log)) == 12
    await broker.cleaner.clean()
    assert sorted(os.listdir(broker.log))[0] == "00000000000000002048"
