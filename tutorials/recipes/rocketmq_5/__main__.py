"""Places an order each second, and prints its credit, until Ctrl-C."""

import os
import time
from uuid import uuid4

from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker

from rocketmq_broker.databases.sqlalchemy import Inbox
from rocketmq_broker.stop_signals import until_interrupted
from tutorials.recipes.rocketmq_5 import credits, shop

with until_interrupted():
    endpoints = os.environ.get("GRPC_ENDPOINTS", "127.0.0.1:8081")
    engine = create_engine(os.environ["DATABASE_URL"])
    shop.Base.metadata.create_all(engine)
    credits.Base.metadata.create_all(engine)
    inbox = Inbox(sessionmaker(engine), "credits")
    producer, consumer = shop.started_producer(endpoints, engine), credits.started_consumer(endpoints)
    try:
        while True:
            shop.place(producer, engine, order_id := str(uuid4()))
            credits.receive(consumer, inbox)
            print(f"order {order_id} is placed, {inbox.drain(credits.give, once=True).handled} credited", flush=True)
            time.sleep(1)
    finally:
        consumer.shutdown()
        producer.shutdown()
