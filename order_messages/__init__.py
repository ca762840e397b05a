"""The message schemas that the services share, with their versions, and the states in their database rows (`states`).

    topic                 tag        meaning                                       producer            consumers
    orders                created    an order was placed, or an order to be        order_service       credit_service,
                                     paid later was paid                                               inventory_service
    order_cancellations   cancelled  a published order was cancelled               order_service       credit_service,
                                                                                                       inventory_service
    order_shortages       short      the stock is too low for an order             inventory_service   order_service
    credit_refusals       refused    an order can never be credited                credit_service      order_service

Each body is JSON and contains the order id, which is also the message's key. A new version only adds fields: an older consumer
ignores unknown fields, and a newer consumer has defaults for missing ones. Any other change needs a new tag or topic.

The services do not import each other. They and the reconciliation import this package, which depends on neither the broker nor a
database.
"""
