"""The order service, which places each order in one transaction across the order database and the broker.

    POST /orders -> half message -> local transaction: order and transaction row -> COMMIT or ROLLBACK to the broker
                                          ^
    a check-back reads the transaction row and returns COMMIT or ROLLBACK

"Local commit" means the commit of the database. COMMIT in capitals is the decision sent to the broker.

Start with `domain.order` (the rules), `service_layer.transaction_listener` (the two callbacks of RocketMQ),
`adapters.order_store` (how the callbacks exclude each other) and `entrypoints.http` (the HTTP interface).
"""
