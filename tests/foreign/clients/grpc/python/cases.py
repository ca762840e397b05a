"""Runs cases with Apache's unmodified Python client of RocketMQ 5. Each prints its name and `ok` or the error.

`python cases.py HOST:PORT PREFIX [CASE...]` runs these cases, or all cases if none are given, concurrently. The topic of each
case begins with the prefix.
"""

import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)
from rocketmq.grpc_protocol import FilterType

WITHIN_S = 120
PATIENCE_S = 30
"""Of a request: a client that sends again after less may send twice."""
LOSES_KEYS_AND_PROPERTIES = version("rocketmq-python-client") == "5.0.9"
"""Of what it receives: `Message.fromProtobuf` takes them over where there are none."""
CONFIGURATION = ClientConfiguration(sys.argv[1], Credentials(), request_timeout=PATIENCE_S)


def message(topic: str, body: str, **fields: object) -> Message:
    made = Message()
    made.topic, made.body = topic, body.encode()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def producer(topic: str, checker: TransactionChecker | None = None) -> Producer:
    made = Producer(CONFIGURATION, (topic,), checker=checker) if checker is not None else Producer(CONFIGURATION, (topic,))
    made.startup()
    return made


def sent(topic: str, *messages: Message) -> None:
    sender = producer(topic)
    for one in messages:
        assert sender.send(one).message_id
    sender.shutdown()


def simple(topic: str, expression: FilterExpression | None = None) -> SimpleConsumer:
    made = SimpleConsumer(
        CONFIGURATION, f"group-{topic.replace('%DLQ%group', 'dead')}", {topic: expression or FilterExpression()}, 2
    )
    made.startup()
    return made


def received(consumer: SimpleConsumer, count: int, invisible_s: int = 30) -> list[Message]:
    """Returns `count` messages, or fewer if the time expires."""
    until, found = time.monotonic() + WITHIN_S, []
    while len(found) < count and time.monotonic() < until:
        try:
            found += consumer.receive(16, invisible_s)
        except Exception as error:
            # Apache's proxy takes a client for started before it has the client's settings, and fails until then.
            if '"settings" is null' not in str(error):
                raise
            time.sleep(0.1)
    return found


def bodies(messages: list[Message]) -> list[str]:
    return [one.body.decode() for one in messages]


class Listener(MessageListener):
    """A listener that fails at the first `failures` deliveries, and sets `done` at the second delivery."""

    def __init__(self, failures: int) -> None:
        self.failures, self.attempts, self.done = failures, [], threading.Event()

    def consume(self, delivered: Message) -> ConsumeResult:
        self.attempts.append(delivered.delivery_attempt)
        if len(self.attempts) == 2:
            self.done.set()
        return ConsumeResult.FAILURE if len(self.attempts) <= self.failures else ConsumeResult.SUCCESS


class Checker(TransactionChecker):
    def __init__(self, resolution: TransactionResolution) -> None:
        self.resolution, self.asked = resolution, threading.Event()

    def check(self, half: Message) -> TransactionResolution:
        self.asked.set()
        return self.resolution


def plain_message(topic: str) -> None:
    one = message(topic, "hello", tag="red", keys="a")
    one.add_property("x", "y")
    sent(topic, one)
    consumer = simple(topic)
    (got,) = received(consumer, 1)
    assert (got.body, got.tag) == (b"hello", "red"), got
    keys, properties = (set(), {}) if LOSES_KEYS_AND_PROPERTIES else ({"a"}, {"x": "y"})
    assert (got.keys, got.properties) == (keys, properties), got
    consumer.ack(got)
    assert not consumer.receive(16, 15)
    consumer.shutdown()


def fifo_messages(topic: str) -> None:
    sent(topic, *(message(topic, str(number), message_group="g") for number in range(5)))
    consumer = simple(topic)
    got = received(consumer, 5)
    assert bodies(got) == ["0", "1", "2", "3", "4"], got
    consumer.shutdown()


def delayed_message(topic: str) -> None:
    due_s = int(time.time()) + 2
    sent(topic, message(topic, "later", delivery_timestamp=due_s))
    consumer = simple(topic)
    assert bodies(received(consumer, 1)) == ["later"]
    assert time.time() >= due_s
    consumer.shutdown()


def tag_filter(topic: str) -> None:
    sent(topic, message(topic, "red", tag="red"), message(topic, "blue", tag="blue"))
    consumer = simple(topic, FilterExpression("blue"))
    assert bodies(received(consumer, 1)) == ["blue"]
    consumer.shutdown()


def sql_filter(topic: str) -> None:
    little, much = message(topic, "little"), message(topic, "much")
    little.add_property("price", "5")
    much.add_property("price", "50")
    sent(topic, little, much)
    consumer = simple(topic, FilterExpression("price > 10", FilterType.SQL))
    assert bodies(received(consumer, 1)) == ["much"]
    consumer.shutdown()


def invisible_time_changed(topic: str) -> None:
    sent(topic, message(topic, "again"))
    consumer = simple(topic)
    (first,) = received(consumer, 1, invisible_s=60)
    consumer.change_invisible_duration(first, 2)
    (second,) = received(consumer, 1)
    assert second.delivery_attempt == 2, second.delivery_attempt
    consumer.ack(second)
    consumer.shutdown()


def transaction_committed(topic: str) -> None:
    sender = producer(topic, Checker(TransactionResolution.COMMIT))
    transaction = sender.begin_transaction()
    sender.send(message(topic, "tx"), transaction)
    transaction.commit()
    consumer = simple(topic)
    assert bodies(received(consumer, 1)) == ["tx"]
    consumer.shutdown()
    sender.shutdown()


def transaction_rolled_back(topic: str) -> None:
    sender = producer(topic, Checker(TransactionResolution.ROLLBACK))
    transaction = sender.begin_transaction()
    sender.send(message(topic, "tx"), transaction)
    transaction.rollback()
    sender.shutdown()
    sent(topic, message(topic, "after"))
    consumer = simple(topic)
    assert bodies(received(consumer, 1)) == ["after"]
    consumer.shutdown()


def lost_decision_checked_back(topic: str) -> None:
    checker = Checker(TransactionResolution.COMMIT)
    sender = producer(topic, checker)
    sender.send(message(topic, "tx"), sender.begin_transaction())
    assert checker.asked.wait(WITHIN_S), "no check-back"
    consumer = simple(topic)
    assert bodies(received(consumer, 1)) == ["tx"]
    consumer.shutdown()
    sender.shutdown()


def push_consumer_with_a_retry(topic: str) -> None:
    assert attempts(topic, 1, message(topic, "hello")) == [1, 2]


def push_consumer_to_dead_letters(topic: str) -> None:
    assert attempts(topic, 2, message(topic, "hello")) == [1, 2]


def fifo_push_consumer_to_dead_letters(topic: str) -> None:
    # The client tries a FIFO message again by itself, and does not count that in the message.
    assert attempts(topic, 2, message(topic, "hello", message_group="g")) == [1, 1]


def attempts(topic: str, failures: int, one: Message) -> list[int]:
    """Returns the attempt number of each delivery of a message whose consumer fails `failures` times.

    After two failures the message must be a dead letter.
    """
    listener = Listener(failures)
    consumer = PushConsumer(CONFIGURATION, f"group-{topic}", listener, {topic: FilterExpression()})
    consumer.startup()
    sent(topic, one)
    assert listener.done.wait(WITHIN_S), listener.attempts
    if failures == 2:
        dead_letters = simple(f"%DLQ%group-{topic}")
        assert bodies(received(dead_letters, 1, invisible_s=10)) == ["hello"]
        dead_letters.shutdown()
    consumer.shutdown()
    return listener.attempts


CASES: tuple[Callable[[str], None], ...] = (
    plain_message,
    fifo_messages,
    delayed_message,
    tag_filter,
    sql_filter,
    invisible_time_changed,
    transaction_committed,
    transaction_rolled_back,
    lost_decision_checked_back,
    push_consumer_with_a_retry,
    push_consumer_to_dead_letters,
    fifo_push_consumer_to_dead_letters,
)


def name_of(case: Callable[[str], None]) -> str:
    return case.__name__.replace("_", "-")


def line_of(case: Callable[[str], None]) -> str:
    name = name_of(case)
    try:
        case(sys.argv[2] + name)
    except Exception:
        return f"{name} {traceback.format_exc()!r}"
    return f"{name} ok"


if __name__ == "__main__":
    with ThreadPoolExecutor(len(CASES)) as threads:
        for line in threads.map(line_of, [case for case in CASES if name_of(case) in (sys.argv[3:] or [name_of(case)])]):
            print(line, flush=True)
