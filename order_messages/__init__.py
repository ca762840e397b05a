"""The common language of the services: each message's schema with its version, and, in `states`, the words of their rows.

    topic                 tag        says                                          producer            consumers
    orders                created    an order is placed, or paid where it          order_service       credit_service,
                                     was to be paid later                                              inventory_service
    order_cancellations   cancelled  such an order is cancelled                    order_service       credit_service,
                                                                                                       inventory_service
    order_shortages       short      there is too little in stock for an order     inventory_service   order_service
    credit_refusals       refused    an order cannot be credited, for good         credit_service      order_service

Each body is JSON with the order id, which is also the message's key. A version only adds fields. So a consumer of an older
version ignores unknown fields, and a consumer of a newer one has defaults for missing fields. Any other change gets a new tag or
topic.

No service imports another one; each imports this package, as does the reconciliation. It knows neither the broker nor a database.
"""
