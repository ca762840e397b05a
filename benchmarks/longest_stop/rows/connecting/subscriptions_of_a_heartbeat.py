"""One heartbeat carries as many subscriptions as fit into a frame."""

import contextlib

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode

WHAT = "heartbeat with 600,000 subscriptions"
SUBSCRIPTIONS = 600_000


async def run(stage: Stage) -> None:
    """Measures the heartbeat."""
    subscriptions = b",".join(b'{"topic":"%d"}' % number for number in range(SUBSCRIPTIONS))
    body = b'{"clientID":"greedy","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[' + subscriptions + b"]}]}"
    peer = await stage.connect()
    await stage.begin()
    with contextlib.suppress(ConnectionError):
        await peer.ask(RequestCode.HEART_BEAT, body=body)
