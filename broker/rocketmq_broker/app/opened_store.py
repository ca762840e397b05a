"""Opens the store and its tables."""

import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.app.errors import StartError
from rocketmq_broker.config import BrokerSettings
from rocketmq_broker.message.topics import TRANSACTION_CONSUMER_GROUP
from rocketmq_broker.platform.files import mode_for_others
from rocketmq_broker.server.schedule.delay_levels import parse_delay_levels
from rocketmq_broker.server.topics.identity import BrokerIdentity
from rocketmq_broker.store import (
    ConsumerOffsets,
    DamagedStore,
    DelayOffsets,
    FileSystem,
    FlushDiskType,
    MessageStore,
    StoreConfig,
    StoreLocked,
    SubscriptionGroups,
    TopicConfigs,
)

logger = logging.getLogger(__name__)

_MAX_LOGGED: Final = 100


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """An open store and its tables. They contain all data that the broker stores on disk."""

    messages: MessageStore
    topics: TopicConfigs
    groups: SubscriptionGroups
    consumer_offsets: ConsumerOffsets
    delay_offsets: DelayOffsets


def open_store(settings: BrokerSettings, identity: BrokerIdentity, now_ms: int, files: FileSystem | None = None) -> OpenedStore:
    """Opens or creates the store at the path in the settings. Raises StartError."""
    config = store_config(settings, identity)
    try:
        messages = MessageStore.open(config, files)
    except StoreLocked as error:
        raise StartError(f"the store {error}") from None
    except (DamagedStore, OSError) as error:
        raise StartError(f"cannot open the store {config.root}: {error}") from None
    if files is None:
        _warn_of_open_folders(config)
    for action in messages.recovery.actions:
        logger.warning("recovery: %s", action)
    try:
        topics, groups, consumer_offsets, delay_offsets = _load_tables(config.config_directory, files)
    except (DamagedStore, OSError) as error:
        messages.close()
        raise StartError(f"cannot open the store {config.root}: {error}") from None
    for table in (topics, groups, consumer_offsets, delay_offsets):
        if table.complaint is not None:
            logger.warning("recovery: %s", table.complaint)
    if (topics.complaint is not None or not len(topics)) and (lost := topics.add_lost(messages.queues(), now_ms)):
        logger.warning("recovery: created default settings for topics that had none: %s", ", ".join(lost))
        with suppress(OSError):  # for example if the disk is full; the next start then finds the topics again
            topics.persist()
    correct_consumer_offsets(consumer_offsets, messages)
    return OpenedStore(messages, topics, groups, consumer_offsets, delay_offsets)


def correct_consumer_offsets(offsets: ConsumerOffsets, messages: MessageStore) -> None:
    """Resets each offset beyond the end of its queue to the end.

    With ASYNC_FLUSH, a power failure may destroy the end of the commit log but not the offsets. Without the reset, groups would
    skip new messages.

    Offsets of the group CID_RMQ_SYS_TRANS are not changed. If they are out of range, `recover_transactions` reads all half
    messages.
    """
    corrected = 0
    for name, queues in offsets.as_json().items():
        topic, _, group = name.partition("@")
        if group == TRANSACTION_CONSUMER_GROUP:
            continue
        for queue_id, offset in queues.items():
            end = messages.max_offset(topic.encode(), queue_id)
            if offset > end:
                corrected += 1
                if corrected <= _MAX_LOGGED:
                    logger.warning(
                        "reset the offset of group %s in topic %s, queue %d, from %d to the queue's end %d",
                        group, topic, queue_id, offset, end,
                    )  # fmt: skip
                offsets.commit(group, topic, queue_id, end)
    if corrected > _MAX_LOGGED:
        logger.warning("reset %d more offsets that were beyond the ends of their queues", corrected - _MAX_LOGGED)


def store_config(settings: BrokerSettings, identity: BrokerIdentity) -> StoreConfig:
    """Returns the store's configuration, which is derived from the broker's settings."""
    commit_log_path = settings.store_path_commit_log
    return StoreConfig(
        root=settings.store_root,
        store_host=identity.store_host,
        commit_log_path=Path(commit_log_path).expanduser() if commit_log_path else None,
        commit_log_segment_size=settings.maped_file_size_commit_log,
        consume_queue_units_per_file=settings.consume_queue_units_per_file,
        index_slots=settings.max_hash_slot_num,
        index_entries=settings.max_index_num,
        is_index_enabled=settings.message_index_enable,
        flush_disk_type=FlushDiskType(settings.flush_disk_type),
        file_reserved_hours=settings.file_reserved_time,
        delete_when=settings.delete_when,
        disk_max_used_ratio=settings.disk_max_used_space_ratio / 100,
        is_clean_forcible=settings.clean_file_forcibly_enable,
        disk_clean_ratio=settings.disk_space_clean_forcibly_ratio / 100,
        disk_full_ratio=settings.disk_space_warning_level_ratio / 100,
        max_message_size=settings.max_message_size,
        delay_levels_ms=parse_delay_levels(settings.message_delay_level),
    )


def _warn_of_open_folders(config: StoreConfig) -> None:
    """Warns about directories that other users can access.

    The broker creates private directories, but does not change existing ones.
    """
    for folder in dict.fromkeys((config.root, config.commit_log_directory)):
        mode = mode_for_others(folder)
        if mode is not None and (folder == config.root or not folder.is_relative_to(config.root)):
            logger.warning("other users can access %s (mode %o): run chmod 700 %s", folder, mode, folder)


def _load_tables(
    directory: Path, files: FileSystem | None
) -> tuple[TopicConfigs, SubscriptionGroups, ConsumerOffsets, DelayOffsets]:
    tables = (
        TopicConfigs(directory, files),
        SubscriptionGroups(directory, files),
        ConsumerOffsets(directory, files),
        DelayOffsets(directory, files),
    )
    for table in tables:
        table.load()
    return tables
