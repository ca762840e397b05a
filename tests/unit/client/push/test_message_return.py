"""Messages are returned to the broker, or sent to the retry topic if the broker does not accept their return."""

from rocketmq_broker.client import BrokerError, ClientError, MessageRefused, SendFailed
from rocketmq_broker.client.push.message_return import MessageReturn, retry_message
from rocketmq_broker.message import Message, MessageExt, properties
from tests.unit.client.messages import message


class Broker:
    def __init__(self, *, takes_back: bool = True, takes_retries: bool = True, refusal: ClientError | None = None) -> None:
        self.takes_back = takes_back
        self.takes_retries = takes_retries
        self.refusal = refusal or SendFailed("no broker")
        self.given_back: list[tuple[str, int, int]] = []
        self.sent: list[Message] = []

    async def consumer_send_message_back(self, group: str, given: MessageExt, delay_level: int, limit: int) -> None:
        if not self.takes_back:
            raise BrokerError(1, "look message by offset failed")
        self.given_back.append((given.message_id, delay_level, limit))

    async def send(self, sent: Message) -> None:
        if not self.takes_retries:
            raise self.refusal
        self.sent.append(sent)


def message_return(broker: Broker) -> MessageReturn:
    return MessageReturn("group", broker, broker, 16)  # type: ignore[arg-type]


async def test_the_broker_takes_it_back_by_its_offset() -> None:
    broker = Broker()
    assert await message_return(broker).give_back(message(5), 3)
    assert (broker.given_back, broker.sent) == ([("ID5", 3, 16)], [])


async def test_what_the_broker_does_not_take_back_is_sent_to_the_retry_topic() -> None:
    broker = Broker(takes_back=False)
    assert await message_return(broker).give_back(message(5, reconsume_times=2), 0)
    (sent,) = broker.sent
    assert sent.topic == "%RETRY%group"
    assert sent.properties[properties.RECONSUME_TIME] == "3"
    assert sent.properties[properties.MAX_RECONSUME_TIMES] == "16"


async def test_what_is_meant_for_the_dead_letters_goes_there_by_the_detour_too() -> None:
    broker = Broker(takes_back=False)
    assert await message_return(broker).give_back(message(5), -1)
    assert broker.sent[0].properties[properties.MAX_RECONSUME_TIMES] == "0"


async def test_what_gives_way_is_sent_to_the_retry_topic_and_no_redelivery_is_counted() -> None:
    broker = Broker()
    for times in (0, 2, 16):
        assert await message_return(broker).give_way(message(5, reconsume_times=times), 5)
    assert broker.given_back == []
    carried = (properties.RECONSUME_TIME, properties.MAX_RECONSUME_TIMES, properties.DELAY_TIME_LEVEL)
    assert [tuple(sent.properties[name] for name in carried) for sent in broker.sent] == [
        ("0", "16", "5"),
        ("2", "16", "5"),
        ("16", "17", "5"),
    ]
    assert {sent.topic for sent in broker.sent} == {"%RETRY%group"}


async def test_if_nobody_takes_it_the_caller_is_told() -> None:
    assert not await message_return(Broker(takes_back=False, takes_retries=False)).give_back(message(5), 0)
    assert not await message_return(Broker(takes_retries=False)).to_dead_letters(message(5))


def test_a_retry_keeps_body_id_and_topic_and_is_no_transaction_any_more() -> None:
    committed = message(5, body=b"order", properties={"UNIQ_KEY": "U", "TRAN_MSG": "true", "TAGS": "created", "DELAY": "9"})
    retry = retry_message("group", committed, 1, 16)
    assert retry.body == b"order"
    assert dict(retry.properties) == {
        "UNIQ_KEY": "U",
        "TAGS": "created",
        "ORIGIN_MESSAGE_ID": "U",
        "RETRY_TOPIC": "orders",
        "RECONSUME_TIME": "1",
        "MAX_RECONSUME_TIMES": "16",
        "DELAY": "3",
    }


async def test_what_has_no_room_for_a_retry_is_given_to_the_dead_letters() -> None:
    """A failed message becomes a dead letter if its properties are too long for the retry topic.

    Otherwise the consumer would retry the message forever.
    """
    broker = Broker(takes_retries=False, refusal=MessageRefused("message properties too long: 32800 bytes, at most 32767"))
    assert await message_return(broker).give_way(message(5), 5)
    assert await message_return(broker).to_dead_letters(message(6))
    assert broker.given_back == [("ID5", -1, 16), ("ID6", -1, 16)]


async def test_what_no_broker_takes_at_all_is_tried_again_here() -> None:
    broker = Broker(takes_back=False, takes_retries=False, refusal=MessageRefused("the properties are too long"))
    assert not await message_return(broker).give_back(message(5), 0)
