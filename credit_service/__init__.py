"""The credit service. It credits each order once, with one point for each full currency unit of the order's total.

    broker -> push consumer -> inbox -> Celery task on Redis -> ledger and balances
                    |            |                                      |
          CONSUME_SUCCESS only then    in the transaction that removes the message from the inbox

Start with `domain.credit` (the rules), `service_layer.crediting` (from message to entry), `adapters.ledger` (why a redelivery
changes nothing), `worker.process` (what a task does) and `entrypoints.http` (the HTTP interface).
"""
