"""One pull carries a subscription of 9 MB, another the longest that the broker takes."""

import contextlib

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import PullMessageRequestHeader

WHAT = "pull with a subscription of 9 MB"
LENGTHS = (60_000, 500_000, 9_000_000)


async def run(stage: Stage) -> None:
    """Measures the pulls."""
    await stage.begin()
    for length in LENGTHS:
        pull = PullMessageRequestHeader(
            consumer_group="greedy",
            topic="TBW102",
            queue_id=0,
            queue_offset=0,
            max_msg_nums=32,
            sys_flag=4,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="||".join(f"tag{number:05}" for number in range(length // 10)),
            sub_version=0,
        )
        peer = await stage.connect()
        with contextlib.suppress(ConnectionError):
            await peer.ask(RequestCode.PULL_MESSAGE, pull)
