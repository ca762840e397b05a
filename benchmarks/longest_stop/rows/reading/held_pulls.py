"""Four clients hold 32,768 pulls, each for its own tag that never comes, while another client sends messages."""

from benchmarks.longest_stop.rows.reading.views_of_a_large_message import SEND
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import PullMessageRequestHeader

WHAT = "32,768 held pulls with tags that never match, then messages"
PEERS = 4
PULLS = 8192
MESSAGES = 20


async def run(stage: Stage) -> None:
    """Measures the messages."""
    sender = await stage.connect()
    await sender.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"the queue is there")
    for peer_number in range(PEERS):
        peer = await stage.connect()
        pulls = (header(f"{peer_number}-{number}") for number in range(PULLS))
        await peer.write(b"".join(peer.frame(RequestCode.PULL_MESSAGE, pull) for pull in pulls))
        await stage.settle()
    await stage.begin()
    for _ in range(MESSAGES):
        await sender.ask(RequestCode.SEND_MESSAGE_V2, SEND, b"body")


def header(tag: str) -> PullMessageRequestHeader:
    """Returns the header of a pull that waits for messages with the tag, behind the first message."""
    return PullMessageRequestHeader(
        consumer_group="patient",
        topic="views",
        queue_id=0,
        queue_offset=1,
        max_msg_nums=32,
        sys_flag=6,
        commit_offset=0,
        suspend_timeout_millis=110_000,
        subscription=tag,
        sub_version=0,
    )
