"""Forms that store something new: a message, and a topic."""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketmq_broker.admin.console.brokers import the_broker_at
from rocketmq_broker.admin.console.deed import Deed
from rocketmq_broker.admin.console.pages import url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.messages.sending import new_message
from rocketmq_broker.admin.messages.sending import send as send_message
from rocketmq_broker.admin.progress.topics import create_topic, topics_of
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.telling.numbers import is_number
from rocketmq_broker.message import topics
from rocketmq_broker.world import World

QUEUES: Final = 4
"""The number of queues that the form proposes."""


class SendFacts(NamedTuple):
    """What the form of a message proposes."""

    topics: list[str]


class NewTopicFacts(NamedTuple):
    """What the form of a topic proposes."""

    brokers: list[str]
    queues: int = QUEUES
    most_queues: int = topics.MAX_QUEUES


async def find_topics_to_send_to(visit: Visit) -> SendFacts:
    """Returns the names of programs' topics. Raises CannotAsk, Refused."""
    answers = await (await visit.session()).ask_each(lambda broker: topics_of(broker, every_one=False))
    return SendFacts(sorted({one.topic for _, found in answers for one in found}))


async def find_brokers(visit: Visit) -> NewTopicFacts:
    """Returns the addresses of the brokers that can have the topic. Raises CannotAsk."""
    return NewTopicFacts([broker.address for broker in (await visit.session()).brokers])


def send_deed(world: World) -> Deed:
    """Returns the form that sends a message; the world gives it its id and time."""

    async def send(visit: Visit) -> str:
        """Stores the message of the form. Raises Refused for one that brokers refuse, CannotAsk."""
        properties = [line.strip() for line in visit.query.get("properties", "").splitlines() if line.strip()]
        body = visit.query.get("body", "").replace("\r\n", "\n").encode()
        try:
            message = new_message(visit.word("topic"), body, visit.word("keys").split(), visit.word("tag") or None, properties)
        except CannotAsk as error:
            raise Refused(str(error)) from None
        address, sent = await send_message(await visit.session(), message, world)
        return f"sent: {sent.message_id} to {sent.topic}, queue {sent.queue_id} at {sent.queue_offset} (broker {address})"

    return Deed("/send/message", send, lambda visit: url("/topic/tail", topic=visit.word("topic")), form_at=lambda visit: "/send")


async def create(visit: Visit) -> str:
    """Creates the topic of the form at one broker, or at all of them. Raises Refused if one has it already, CannotAsk."""
    topic, address, session = visit.word("topic"), visit.word("broker"), await visit.session()
    if not is_number(visit.word("queues")):
        raise Refused("the number of queues is a whole number")
    if address:
        session = Session([the_broker_at(session, address)])
    queues = int(visit.word("queues"))
    await create_topic(session, topic, queues)
    return f"created: the topic {topic} with {queues} queues at {', '.join(broker.address for broker in session.brokers)}"


SCREENS: Final = (
    Screen("/send", "Send a message", "send.html", find_topics_to_send_to, refresh_s=None),
    Screen("/topics/new", "Create a topic", "new_topic.html", find_brokers, refresh_s=None),
)
CREATE_DEED: Final = Deed(
    "/topics/create", create, lambda visit: url("/topic", topic=visit.word("topic")), form_at=lambda visit: "/topics/new"
)
