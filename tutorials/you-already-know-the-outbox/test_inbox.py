"""Tests that a message that cannot be credited waits in the inbox, and does not delay other messages."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import MetaData, create_engine, text
from sqlalchemy.orm import Session, sessionmaker

from rocketmq_broker.client import Message
from rocketmq_broker.databases.sqlalchemy import Inbox, add_inbox
from rocketmq_broker.testing import RocketMQ


def credit(session: Session, messages: Sequence[Message]) -> None:
    """Writes the credits in the database transaction that removes their messages from the inbox."""
    for message in messages:
        session.execute(text("INSERT INTO credits VALUES (:order_id, :points)"), {"order_id": message.text, "points": 25})


async def test_an_order_that_cannot_be_credited_waits_and_delays_no_other(rocketmq: RocketMQ, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/credits.db")
    tables = MetaData()
    add_inbox(tables)
    tables.create_all(engine)
    inbox = Inbox(sessionmaker(engine), "credits")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE credits (order_id TEXT UNIQUE CHECK (order_id <> 'order-2'), points INTEGER)"))

    producer = await rocketmq.producer("shop")
    for order in ("order-1", "order-2", "order-3"):
        await producer.send(Message.of("orders", order))
    inbox.put(await rocketmq.messages("orders"))
    result = inbox.drain(credit)
    assert (result.handled, result.failed) == (2, 1)
    assert inbox.state().last_error == "IntegrityError: CHECK constraint failed: order_id <> 'order-2'"
    with engine.connect() as connection:
        assert sorted(connection.execute(text("SELECT order_id FROM credits")).scalars()) == ["order-1", "order-3"]
    engine.dispose()
