"""Runs the split monolith: places two orders, one of which the database refuses, and prints the rows of both databases."""

from tempfile import TemporaryDirectory
from time import sleep

from sqlalchemy import create_engine, func, select

from rocketmq_broker.client import ConsumeFromWhere, EventLoopThread, PushConsumer, TransactionProducer
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.monolith.split import TOPIC, OrderListener, credit_listener, in_transaction
from tutorials.recipes.monolith.whole import Base, Credit, Order, create_app

with until_interrupted(), TemporaryDirectory() as folder, EventLoopThread() as loop:
    orders, credits = (create_engine(f"sqlite:///{folder}/{name}.db") for name in ("orders", "credits"))
    for engine in (orders, credits):
        Base.metadata.create_all(engine)
    producer = loop.enter(TransactionProducer("split-orders", OrderListener(orders)))
    loop.run(producer.create_topic(TOPIC))
    consumer = PushConsumer("split-credits", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.consumes(TOPIC)(credit_listener(credits))
    loop.enter(consumer)
    place = in_transaction(lambda message, order: loop.run(producer.send_message_in_transaction(message, order)))
    customer = create_app(place).test_client()
    for points in (100, 5000):
        print(f"order of {points} points:", customer.put(f"/orders/{points}", json={"points": points}).status)
    sleep(5)  # until the consumer has worked
    for engine, table in ((orders, Order), (credits, Credit)):
        with engine.connect() as connection:
            print(table.__tablename__, connection.scalar(select(func.count()).select_from(table)))
