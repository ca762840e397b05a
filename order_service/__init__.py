"""The order service: places orders in a transaction that the broker and the order database decide together.

    POST /orders -> half message -> local transaction (order and transaction row) -> COMMIT or ROLLBACK
                                          ^
    the broker's check-back ("what became of it?") reads the transaction row

Read on in `domain.order` (the rules), `service_layer.transaction_listener` (the two steps RocketMQ asks for),
`adapters.order_store` (how both stay safe against each other) and `entrypoints.http` (what callers see).
"""
