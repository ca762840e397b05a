"""The inventory service, which ships orders from stock and reports shortages.

    broker -> push consumer (a separate group) -> inbox -> stock and shipment, in the transaction that removes the message
                    |                               |           |
          CONSUME_SUCCESS only then         a thread drains it  +--> outbox -> order_shortages -> the order service cancels

It consumes the same messages as the credit service, in a separate consumer group with separate offsets. A shortage is the failure
path of a saga. No lock spans the services: the credit may already be written, and the cancellation that follows reverses it.

Start with `domain.shipment` (the rules), `service_layer.shipping` (from message to shipment) and `adapters.stock_room` (why a
redelivery ships nothing twice).
"""
