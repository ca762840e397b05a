"""Forms for sending a message and for creating a topic."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.console.brokers import broker_at
from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.pages import url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.messages.sending import new_message
from rocketmq_broker.admin.messages.sending import send as send_message
from rocketmq_broker.admin.output.numbers import is_number
from rocketmq_broker.admin.progress.topics import create_topic, topics_of
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import topics
from rocketmq_broker.world import World

QUEUES: Final = 4
"""The default number of queues in the form."""


class SendFacts(NamedTuple):
    """The suggestions in the form for sending a message."""

    topics: list[str]


class NewTopicFacts(NamedTuple):
    """The choices in the form for creating a topic."""

    brokers: list[str]
    queues: int = QUEUES
    max_queues: int = topics.MAX_QUEUES


async def find_topics_to_send_to(visit: Visit) -> SendFacts:
    """Returns the names of all user topics. Raises CannotAsk or Refused."""
    found = await (await visit.session()).rows(lambda broker: topics_of(broker, every_one=False))
    return SendFacts(sorted({one.topic for _, one in found}))


async def find_brokers(visit: Visit) -> NewTopicFacts:
    """Returns the addresses of the brokers on which the topic can be created. Raises CannotAsk."""
    return NewTopicFacts([broker.address for broker in (await visit.session()).brokers])


def send_action(world: World) -> FormAction:
    """Returns the action that sends a message. `world` provides the message's id and time."""

    async def send(visit: Visit) -> str:
        """Sends the message of the form. Raises CannotAsk, or Refused for an invalid message."""
        properties = [line.strip() for line in visit.query.get("properties", "").splitlines() if line.strip()]
        body = visit.query.get("body", "").replace("\r\n", "\n").encode()
        try:
            message = new_message(visit.word("topic"), body, visit.word("keys").split(), visit.word("tag") or None, properties)
        except CannotAsk as error:
            raise Refused(str(error)) from None
        address, sent = await send_message(await visit.session(), message, world)
        return f"sent: {sent.message_id} to {sent.topic}, queue {sent.queue_id} at {sent.queue_offset} (broker {address})"

    return FormAction(
        "/send/message", send, lambda visit: url("/topic/tail", topic=visit.word("topic")), form_at=lambda visit: "/send"
    )


async def create(visit: Visit) -> str:
    """Creates the topic of the form on one broker or on all brokers. Raises CannotAsk, or Refused if a broker already has it."""
    topic, address, session = visit.word("topic"), visit.word("broker"), await visit.session()
    if not is_number(visit.word("queues")):
        raise Refused(f"the number of queues must be a whole number, not {visit.word('queues')}")
    if address:
        session = Session([broker_at(session, address)])
    queues = int(visit.word("queues"))
    await create_topic(session, topic, queues)
    return f"created: the topic {topic} with {queues} queues at {', '.join(broker.address for broker in session.brokers)}"


SCREENS: Final = (
    Screen("/send", "Send a message", "send.html", find_topics_to_send_to, refresh_s=None),
    Screen("/topics/new", "Create a topic", "new_topic.html", find_brokers, refresh_s=None),
)
CREATE_ACTION: Final = FormAction(
    "/topics/create", create, lambda visit: url("/topic", topic=visit.word("topic")), form_at=lambda visit: "/topics/new"
)
