"""Two producers register in the same 12,000 groups, and the younger one disconnects."""

from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode

WHAT = "hang up a producer with 12,000 groups"
GROUPS = 12_000


async def run(stage: Stage) -> None:
    """Measures the heartbeat and the end of the connection."""
    heartbeat = HeartbeatData(
        client_id="greedy", producer_data_set=[ProducerData(group_name=f"group-{number}") for number in range(GROUPS)]
    ).encode()
    await (await stage.connect()).ask(RequestCode.HEART_BEAT, body=heartbeat)
    peer = await stage.connect()
    await stage.begin()
    await peer.ask(RequestCode.HEART_BEAT, body=heartbeat)
    peer.hang_up()
