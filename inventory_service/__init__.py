"""The inventory service: ships orders from stock, and reports shortages.

    broker -> push consumer (a group of its own) -> stock and shipment, in one database transaction
                                                        |
                                     too little         +--> message in order_shortages -> the order service cancels the order

It reads the messages that the credit service reads, each group at its own pace: that is why a broker stands between the services.
A shortage is the unhappy path of a saga. Nothing is locked over services: the credit was given already, and is taken back by
the cancellation that follows.

Read on in `domain.shipment` (the rules), `service_layer.order_listener` (from message to acknowledgement) and
`adapters.stock_room` (why a redelivery ships nothing twice).
"""
