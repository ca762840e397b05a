"""Sends back messages that a listener could not consume (RocketMQ's DefaultMQPushConsumerImpl.sendMessageBack)."""

import logging

from rocketmq_broker.client.errors import ClientError, MessageRefused
from rocketmq_broker.client.producer.message_sender import MessageSender
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.push.listener_call import TO_THE_DEAD_LETTERS
from rocketmq_broker.message import Message, MessageExt, properties, topics

logger = logging.getLogger(__name__)

_FIRST_DELAY_LEVEL = 3
"""The delay level of the first redelivery, 10 s by default."""
_NOT_COPIED = (
    properties.TRANSACTION_PREPARED,
    properties.DELAY_TIME_LEVEL,
    properties.MIN_OFFSET,
    properties.MAX_OFFSET,
)


class MessageReturn:
    """Returns messages to the broker, which redelivers them to the group later or moves them to the dead-letter topic."""

    def __init__(self, group: str, requests: GroupRequests, sender: MessageSender, max_reconsume_times: int) -> None:
        """`max_reconsume_times` is the number of redeliveries after which the broker moves a message to the dead-letter topic."""
        self._group = group
        self._requests = requests
        self._sender = sender
        self._max_reconsume_times = max_reconsume_times

    async def give_back(self, message: MessageExt, delay_level: int) -> bool:
        """Returns the message to the broker. The result is False if no broker accepted it.

        Delay level -1 moves the message to the dead-letter topic. With 0, the broker chooses the delay.
        """
        if await self._take_back(message, delay_level, "sending it to the retry topic"):
            return True
        limit = 0 if delay_level == TO_THE_DEAD_LETTERS else self._max_reconsume_times
        return await self._send_again(message, message.reconsume_times + 1, limit)

    async def give_way(self, message: MessageExt, delay_level: int) -> bool:
        """Sends the message for redelivery after the delay of `delay_level`, without increasing its redelivery count.

        The result is False if no broker accepted it.
        """
        limit = max(self._max_reconsume_times, message.reconsume_times + 1)
        return await self._send_again(message, message.reconsume_times, limit, delay_level)

    async def to_dead_letters(self, message: MessageExt) -> bool:
        """Sends the message to the group's dead-letter topic. The result is False if no broker accepted it."""
        return await self._send_again(message, message.reconsume_times, 0)

    async def _send_again(self, message: MessageExt, reconsume_times: int, limit: int, delay_level: int | None = None) -> bool:
        try:
            await self._sender.send(retry_message(self._group, message, reconsume_times, limit, delay_level))
            return True
        except MessageRefused as error:
            logger.warning("message %s cannot be sent again: %s; moving it to the dead-letter topic", message.message_id, error)
            return await self._take_back(message, TO_THE_DEAD_LETTERS, "calling the listener again later")
        except ClientError as error:
            logger.warning(
                "message %s could not be sent to the retry topic: %s; calling the listener again later", message.message_id, error
            )
            return False

    async def _take_back(self, message: MessageExt, delay_level: int, otherwise: str) -> bool:
        try:
            await self._requests.consumer_send_message_back(self._group, message, delay_level, self._max_reconsume_times)
            return True
        except ClientError as error:
            logger.warning("message %s could not be returned to the broker: %s; %s", message.message_id, error, otherwise)
            return False


def retry_message(
    group: str, message: MessageExt, reconsume_times: int, max_reconsume_times: int, delay_level: int | None = None
) -> Message:
    """Returns the message for the group's retry topic.

    The broker moves it to the dead-letter topic if `reconsume_times` exceeds `max_reconsume_times`. If `delay_level` is None,
    the delay grows with each redelivery.
    """
    carried = {name: value for name, value in message.properties.items() if name not in _NOT_COPIED}
    carried.setdefault(properties.ORIGIN_MESSAGE_ID, message.message_id)
    carried[properties.RETRY_TOPIC] = message.topic
    carried[properties.RECONSUME_TIME] = str(reconsume_times)
    carried[properties.MAX_RECONSUME_TIMES] = str(max_reconsume_times)
    level = _FIRST_DELAY_LEVEL + message.reconsume_times if delay_level is None else delay_level
    carried[properties.DELAY_TIME_LEVEL] = str(level)
    return Message(topic=topics.retry_topic(group), body=message.body, properties=carried, flag=message.flag)
