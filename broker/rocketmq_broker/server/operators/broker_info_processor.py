"""Reports the broker's runtime information and settings (part of RocketMQ's AdminBrokerProcessor)."""

import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.codes import CURRENT_VERSION, CURRENT_VERSION_NAME, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers.topic import GetBrokerConfigResponseHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import Handler, RequestRefused
from rocketmq_broker.server.durability.put_times import PutTimes
from rocketmq_broker.server.popping import InHand
from rocketmq_broker.server.schedule.delayed_delivery import DelayedDelivery
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.store import MessageStore

_NO_QUEUES: Final = dict.fromkeys(
    (
        "EndTransactionQueueSize",
        "EndTransactionThreadPoolQueueCapacity",
        "dispatchBehindBytes",
        "dispatchMaxBuffer",
        "pageCacheLockTimeMills",
        "pullThreadPoolQueueCapacity",
        "pullThreadPoolQueueHeadWaitTimeMills",
        "pullThreadPoolQueueSize",
        "putMessageFailedTimes",
        "queryThreadPoolQueueCapacity",
        "queryThreadPoolQueueHeadWaitTimeMills",
        "queryThreadPoolQueueSize",
        "sendThreadPoolQueueCapacity",
        "sendThreadPoolQueueHeadWaitTimeMills",
        "sendThreadPoolQueueSize",
        "startAcceptSendRequestTimeStamp",
    ),
    "0",
)
"""Statistics of RocketMQ's thread pools. This broker has no thread pools, so the values are 0."""
_NO_BUFFER_POOL: Final = {"remainTransientStoreBufferNumbs": str((1 << 31) - 1)}


class BrokerInfoProcessor:
    """Reports runtime information and settings, under the names that mqadmin shows."""

    def __init__(
        self,
        *,
        store: MessageStore,
        statistics: BrokerStatistics,
        put_times: PutTimes,
        delayed_delivery: DelayedDelivery,
        in_hand: InHand,
        settings_text: str,
        delete_expired: Callable[[], None],
        clock: Callable[[], int],
    ) -> None:
        """Creates the processor. `settings_text` has the format of broker.conf. `delete_expired` schedules a deletion."""
        self._store = store
        self._statistics = statistics
        self._put_times = put_times
        self._delayed = delayed_delivery
        self._in_hand = in_hand
        self._settings_text = settings_text
        self._delete_expired = delete_expired
        self._clock = clock
        self._start_position = store.written_position

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """Returns the handlers of requests about runtime information and settings, and of the request to delete expired files."""
        return {
            RequestCode.GET_BROKER_RUNTIME_INFO: self.get_runtime_info,
            RequestCode.GET_BROKER_CONFIG: self.get_config,
            RequestCode.UPDATE_BROKER_CONFIG: self.refuse_change,
            RequestCode.GET_ALL_DELAY_OFFSET: self.get_delay_offsets,
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.delete_expired,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.delete_expired,
        }

    def get_runtime_info(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with runtime information of the broker and its store."""
        table = {**_NO_QUEUES, **_NO_BUFFER_POOL, **self._counts(), **self._times(), **self._store_figures()}
        return encode_response(command, ResponseCode.SUCCESS, body=KVTable(table=dict(sorted(table.items()))).encode())

    def get_config(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with all settings."""
        version = GetBrokerConfigResponseHeader(version=f'{{"counter":0,"timestamp":{self._statistics.start_ms}}}')
        return encode_response(command, ResponseCode.SUCCESS, version, self._settings_text.encode())

    def refuse_change(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Refuses all changes of settings. RocketMQ also accepts changes that have no effect, which is misleading.

        Raises RequestRefused. The error text names the settings, and recommends a restart with a changed broker.conf.
        """
        names = sorted(
            line.partition("=")[0].strip() for line in command.body.decode(errors="replace").splitlines() if "=" in line
        )
        remark = f"{', '.join(names) or 'settings'}: cannot be changed at run time; change broker.conf and restart the broker"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)

    def get_delay_offsets(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Responds with the delivered offset of each delay level."""
        entries = ",".join(f"{level}:{offset}" for level, (offset, _) in self._delayed.offsets().items())
        return encode_response(command, ResponseCode.SUCCESS, body=b'{"offsetTable":{%b}}' % entries.encode())

    def delete_expired(self, connection: Connection, command: RemotingCommand) -> bytes:
        """Schedules the deletion of expired files, regardless of the hour. Deleted files are logged."""
        self._delete_expired()
        return encode_response(command, ResponseCode.SUCCESS)

    def _counts(self) -> dict[str, str]:
        counts = self._statistics
        bytes_put = self._store.written_position - self._start_position
        return {
            "brokerVersionDesc": CURRENT_VERSION_NAME,
            "brokerVersion": str(CURRENT_VERSION),
            "bootTimestamp": str(counts.start_ms),
            "runtime": _runtime(self._clock() - counts.start_ms),
            "msgPutTotalYesterdayMorning": str(counts.put_yesterday),
            "msgPutTotalTodayMorning": str(counts.put_at_midnight),
            "msgPutTotalTodayNow": str(counts.messages_put),
            "msgGetTotalYesterdayMorning": str(counts.got_yesterday),
            "msgGetTotalTodayMorning": str(counts.got_at_midnight),
            "msgGetTotalTodayNow": str(counts.messages_got),
            "putMessageTimesTotal": str(counts.messages_put),
            "putMessageSizeTotal": str(bytes_put),
            "putMessageAverageSize": str(bytes_put / max(1, counts.messages_put)),
            "putTps": counts.put_rates(),
            "getTransferedTps": counts.got_rates(),
            "getFoundTps": counts.found_rates(),
            "getMissTps": counts.missed_rates(),
            "getTotalTps": counts.pull_rates(),
        }

    def _times(self) -> dict[str, str]:
        return {
            "getMessageEntireTimeMax": str(self._statistics.max_pull_ms),
            "putMessageEntireTimeMax": str(self._put_times.max_ms),
            "putMessageDistributeTime": self._put_times.distribution(),
            "putLatency99": f"{self._put_times.percentile_ms(0.99):.2f}",
            "putLatency999": f"{self._put_times.percentile_ms(0.999):.2f}",
        }

    def _store_figures(self) -> dict[str, str]:
        config = self._store.config
        ratio = str(math.ceil(self._store.expiry.disk_used_ratio() * 100) / 100)
        is_empty = self._store.commit_log_max_offset == 0
        unflushed = self._store.written_position - self._store.flushed_position
        figures = {
            "commitLogMinOffset": "-1" if is_empty else str(self._store.commit_log_min_offset),
            "commitLogMaxOffset": str(self._store.commit_log_max_offset),
            "commitLogDiskRatio": ratio,
            f"commitLogDiskRatio_{config.commit_log_directory}": ratio,
            "consumeQueueDiskRatio": ratio,
            **_capacity(config.root),
            "remainHowManyDataToFlush": _bytes(unflushed),
            "earliestMessageTimeStamp": str(self._store.earliest_store_time()),
        }
        # The next three do not exist in RocketMQ.
        if refusals := self._in_hand.refusals():
            figures["popMessageRefusal"] = "; ".join(refusals)
        if (refusal := self._store.writability.refusal) is not None:
            figures["putMessageRefusal"] = refusal
        if failures := self._store.writability.flush_failures:
            figures["flushFailures"] = str(failures)
        for level, (offset, max_offset) in self._delayed.offsets().items():
            if max_offset:
                figures[f"scheduleMessageOffset_{level}"] = f"{offset},{max_offset}"
        return figures


def _runtime(elapsed_ms: int) -> str:
    seconds = elapsed_ms // 1000
    days, hours, minutes = seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]"


def _capacity(directory: Path) -> dict[str, str]:
    """Returns the total and free size of the disk. Returns an empty dict for an in-memory store or a missing directory."""
    try:
        usage = shutil.disk_usage(directory)
    except OSError:
        return {}
    return {"commitLogDirCapacity": f"Total : {_bytes(usage.total)}, Free : {_bytes(usage.free)}."}


def _bytes(count: int) -> str:
    """Formats a size as RocketMQ does, for example 1.5 KiB or 70.0 GiB."""
    if count < 1024:
        return f"{count} B"
    amount = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        amount /= 1024
        if amount < 1024 or unit == "PiB":
            break
    return f"{amount:.1f} {unit}"
