"""The order service: places orders, each in one transaction over the order database and the broker.

    POST /orders -> half message -> local transaction: order and transaction row -> COMMIT or ROLLBACK to the broker
                                          ^
    the broker's check-back reads the transaction row, and the answer is COMMIT or ROLLBACK

The local commit is the database's; COMMIT in capitals is sent to the broker.

Read on in `domain.order` (the rules), `service_layer.transaction_listener` (the two steps of RocketMQ), `adapters.order_store`
(how both are safe against each other) and `entrypoints.http` (the view of callers).
"""
