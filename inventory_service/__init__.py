"""The inventory service, which ships orders from stock and reports shortages.

    broker -> push consumer (a separate group)   -> stock and shipment, in one database transaction
                                                        |
                                     stock too low      +--> message in order_shortages -> the order service cancels the order

It consumes the same messages as the credit service, in a separate consumer group with separate offsets. A shortage is the failure
path of a saga. No lock spans the services: the credit may already be written, and the cancellation that follows reverses it.

Start with `domain.shipment` (the rules), `service_layer.order_listener` (from message to acknowledgement) and
`adapters.stock_room` (why a redelivery ships nothing twice).
"""
