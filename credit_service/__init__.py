"""The credit service, which credits each order once, with one point for each full unit of currency of its total.

    broker -> push consumer -> Celery task on Redis -> ledger and balances, in one database transaction
                 ^                                        |
                 +----- CONSUME_SUCCESS only then --------+

Start with `domain.credit` (the rules), `service_layer.order_listener` (from batch to acknowledgement),
`service_layer.patient_crediting` (outages and failing orders), `adapters.ledger` (why a redelivery changes nothing) and
`entrypoints.http` (the HTTP interface).
"""
