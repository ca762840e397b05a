"""Metrics of the store: its size, its disk and its flushes."""

import os
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import Metric

from rocketmq_broker.metrics.families import Families
from rocketmq_broker.metrics.sources import MetricsSources
from rocketmq_broker.platform.files import size_of_file

_BLOCK = 512
_LABELS = ("storage_type", "storage_medium")
_LOCAL_DISK = ("local", "disk")


def storage_metrics(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    """Yields all metrics of the store. Reads the size of each file in the store."""
    store = sources.store
    behind = max(0, store.written_position - store.flushed_position)
    size = sum(size_on_disk(directory) for directory in _directories(store.config.root, store.config.commit_log_directory))
    yield families.gauges("rocketmq_storage_size", "Bytes that the store takes on disk", _LABELS, [(_LOCAL_DISK, size)])
    yield families.gauges(
        "rocketmq_storage_flush_behind_bytes",
        "Bytes of the commit log written but not on disk yet",
        _LABELS,
        [(_LOCAL_DISK, behind)],
    )
    yield families.gauge(
        "rocketmq_storage_disk_used_ratio", "Used share of the store's disk, 0 to 1", store.expiry.disk_used_ratio()
    )
    yield families.gauge(
        "rocketmq_storage_writable",
        "1, or 0 while the store rejects messages because its disk is full or failing",
        store.writability.refusal is None,
    )
    yield families.counter(
        "rocketmq_storage_flush_failures_total",
        "Failed flushes of the commit log; with ASYNC_FLUSH messages are rejected until a flush succeeds",
        store.writability.flush_failures,
    )
    yield families.counter(
        "rocketmq_storage_lost_batches_total",
        "Batches of messages rejected because they could not be written",
        sources.transactions.counts.take_backs,
    )
    yield families.histograms(
        "rocketmq_storage_flush_seconds",
        "Duration of flushes of the commit log",
        (),
        [((), sources.group_commit.flush_times_s)],
    )


def size_on_disk(directory: Path) -> int:
    """Returns the number of bytes of disk space that the files in a directory and its subdirectories occupy.

    Skips files that are deleted during the call.
    """
    size = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                size += size_of_file(os.path.join(parent, name))
            except FileNotFoundError:
                continue
    return size


def _directories(root: Path, commit_log: Path) -> list[Path]:
    """Returns the directories to measure. The commit log may be outside the root."""
    return [root] if commit_log.is_relative_to(root) else [root, commit_log]
