"""The commands `message`, `tail` and `send`. They work with Apache's brokers, too."""

import sys
from contextlib import aclosing
from typing import Annotated

import typer

from rocketmq_broker.admin.messages.finding import find_messages
from rocketmq_broker.admin.messages.following import follow
from rocketmq_broker.admin.messages.printing import print_line, print_messages
from rocketmq_broker.admin.messages.sending import new_message
from rocketmq_broker.admin.messages.sending import send as send_message
from rocketmq_broker.admin.options import AsJson, BrokerAddr, NameServers, target_of, with_session
from rocketmq_broker.admin.output.printing import echo, print_json
from rocketmq_broker.admin.running import run
from rocketmq_broker.admin.session import Session
from rocketmq_broker.world import current_world

FROM_STDIN = "-"

Word = Annotated[str, typer.Argument(metavar="ID|KEY", help="Offset message id, message id (unique id) or key.")]
InTopic = Annotated[str | None, typer.Option("-t", "--topic", help="The topic to search; default: all topics.")]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC")]
Last = Annotated[int, typer.Option("-n", "--last", min=0, max=1000, help="Start with this many of the last messages.")]
Count = Annotated[int | None, typer.Option("-c", "--count", min=1, help="Stop after this many messages.")]
Body = Annotated[str, typer.Argument(metavar="BODY", help="The body, sent as UTF-8; - reads it from standard input.")]
Keys = Annotated[list[str] | None, typer.Option("--key", help="A key of the message; may be repeated.")]
Tag = Annotated[str | None, typer.Option("--tag", help="The tag of the message, which subscriptions can filter by.")]
Properties = Annotated[
    list[str] | None, typer.Option("--property", metavar="NAME=VALUE", help="A property of the message; may be repeated.")
]
NamesrvOnly = Annotated[
    str | None,
    typer.Option("--namesrv-addr", help="Name servers, HOST:PORT;HOST:PORT; default: NAMESRV_ADDR, or 127.0.0.1:9876."),
]


@with_session
async def message(session: Session, word: Word, topic: InTopic = None, as_json: AsJson = False) -> None:
    """Show a message: its position, properties and body, and the groups that have consumed it."""
    rows = await find_messages(session, word, topic)
    if as_json:
        print_json(rows)
    else:
        print_messages(rows)


def tail(
    context: typer.Context,
    topic: TopicName,
    last: Last = 10,
    count: Count = None,
    as_json: AsJson = False,
    namesrv_addr: NamesrvOnly = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Follow a topic: print its last messages, then each new one, until Ctrl-C. Does not change any group's offset."""

    async def work(session: Session) -> None:
        shown = 0
        async with aclosing(follow(session, topic, last)) as lines:
            async for address, one in lines:
                print_line(address, one, as_json=as_json)
                shown += 1
                if shown == count:
                    return

    run(target_of(context, namesrv_addr, broker_addr), work)


def send(
    context: typer.Context,
    topic: TopicName,
    body: Body,
    keys: Keys = None,
    tag: Tag = None,
    properties: Properties = None,
    as_json: AsJson = False,
    namesrv_addr: NameServers = None,
    broker_addr: BrokerAddr = None,
) -> None:
    """Send one message."""
    content = sys.stdin.buffer.read() if body == FROM_STDIN else body.encode()

    async def work(session: Session) -> None:
        address, sent = await send_message(
            session, new_message(topic, content, keys or [], tag, properties or []), current_world()
        )
        if as_json:
            print_json([(address, sent)])
        else:
            echo(f"sent: {sent.message_id} to {sent.topic}, queue {sent.queue_id} at {sent.queue_offset} (broker {address})")

    run(target_of(context, namesrv_addr, broker_addr), work)
