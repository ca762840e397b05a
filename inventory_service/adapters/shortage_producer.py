"""Tells of shortages by a plain message. It needs no transaction: the order's own message is redelivered until it is sent."""

import logging
from typing import Final

from broker.client import ClientError, EventLoopThread, Producer
from broker.message import Message
from inventory_service.service_layer.ports import ShortageNotTold
from order_messages import stock_short
from order_messages.stock_short import StockShort
from service_runtime.tracing import carried_properties

PRODUCER_GROUP: Final = "inventory_service"
_WAIT_S: Final = 20.0

logger = logging.getLogger(__name__)


class ShortageProducer:
    """See `service_layer.ports.ShortageTeller`; safe to use from several threads. Starting needs no broker to be there."""

    def __init__(self, *, namesrv_addr: str, send_timeout_ms: int) -> None:
        """`send_timeout_ms` is how long the broker may take to store a message."""
        self._producer = Producer(PRODUCER_GROUP, namesrv_addr=namesrv_addr, send_timeout_ms=send_timeout_ms)
        self._loop = EventLoopThread()

    def start(self) -> None:
        """From now on messages can be sent. Raises ClientError."""
        self._loop.start()
        self._loop.run(self._producer.start(), timeout_s=_WAIT_S)

    def stop(self) -> None:
        """Nothing can be sent any more."""
        try:
            self._loop.run(self._producer.shutdown(), timeout_s=_WAIT_S)
        except (ClientError, TimeoutError) as error:
            logger.warning("the producer did not shut down cleanly: %s", error)
        self._loop.stop()

    def tell(self, order_id: str, missing: str) -> None:
        """See `service_layer.ports.ShortageTeller`."""
        body = StockShort(version=stock_short.VERSION, order_id=order_id, missing=missing)
        message = Message.of(
            stock_short.TOPIC, body.encode(), tags=stock_short.TAG, keys=[order_id], user_properties=carried_properties()
        )
        try:
            self._loop.run(self._producer.send(message), timeout_s=_WAIT_S)
        except (ClientError, TimeoutError) as error:
            raise ShortageNotTold(f"the shortage of order {order_id} could not be told: {error}") from error
