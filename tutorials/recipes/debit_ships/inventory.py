"""The inventory service, which ships each debited order once, even if the order's message is delivered twice."""

from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus, MessageExt, PushConsumer
from rocketmq_broker.databases.sqlalchemy import once_async
from tutorials.recipes.debit_ships.payments import TOPIC, Base, Order


class Shipment(Base):
    """A shipped order."""

    __tablename__ = "shipments"
    order_id: Mapped[str] = mapped_column(primary_key=True)
    customer: Mapped[str]


def shipping(engine: AsyncEngine) -> PushConsumer:
    """Returns the consumer that ships debited orders."""
    consumer = PushConsumer("debit-shipments", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)

    @consumer.consumes(TOPIC)
    async def ship(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            order = Order.model_validate_json(message.body)
            async with AsyncSession(engine) as session, once_async(session, message, "inventory") as is_first:
                if is_first:
                    session.add(Shipment(order_id=order.order_id, customer=order.customer))
        return ConsumeStatus.CONSUME_SUCCESS

    return consumer
