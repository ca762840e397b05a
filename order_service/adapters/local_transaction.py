"""The local transaction of an order: the INSERT that decides the race with the check-back.

The primary key of a transaction's row is the transaction id. The local transaction inserts the row as COMMITTED, together with
the order. A check-back that finds no row inserts it as ROLLED_BACK. The second of these two INSERTs fails, because the key
already exists. The order therefore exists if and only if the transaction is COMMITTED, whatever happens to the messages between
service and broker.
"""

from typing import Final

from sqlalchemy import Connection

from order_service.adapters.tables import OrderDatabase
from order_service.domain.order import Order
from rocketmq_broker.databases.missing_rows import insert_missing

Values = dict[str, object]
"""The values of a row by column name."""
TRANSACTIONS: Final = OrderDatabase.metadata.tables["transactions"]
ORDERS: Final = OrderDatabase.metadata.tables["orders"]
ITEMS: Final = OrderDatabase.metadata.tables["order_items"]


def insert_order(connection: Connection, order: Order, transaction: Values) -> bool:
    """Inserts the rows of the transaction, the order and its items. The caller must commit.

    Returns False, and inserts nothing, if the transaction already has a row, because a check-back has rolled it back.
    """
    if connection.dialect.name == "postgresql":
        decided = {f"decided_{name}": value for name, value in transaction.items()}
        return bool(connection.exec_driver_sql(_ON_POSTGRESQL, parameters_of(order) | decided).scalar_one())
    if not insert_missing(connection, TRANSACTIONS, [transaction], ["transaction_id"]):
        return False
    connection.execute(ORDERS.insert(), order_values(order))
    connection.execute(ITEMS.insert(), item_values(order))
    return True


ORDER_AND_ITEMS: Final = """
stored AS (
    INSERT INTO orders (order_id, customer, total_cents, currency, idempotency_key, created_at_ms, state, pay_until_ms)
    SELECT order_id, %(customer)s, %(total_cents)s, %(currency)s, %(idempotency_key)s, %(created_at_ms)s, %(state)s,
           %(pay_until_ms)s::bigint
    FROM decided
), items AS (
    INSERT INTO order_items (order_id, name, quantity, price_cents)
    SELECT decided.order_id, item.name, item.quantity, item.price_cents
    FROM decided, unnest(%(names)s::text[], %(quantities)s::integer[], %(prices)s::bigint[]) WITH ORDINALITY
         AS item (name, quantity, price_cents, line)
    ORDER BY item.line
)
SELECT count(*) FROM decided
"""
"""The end of the statement on PostgreSQL, which inserts an order and its items if `decided` has a row."""
_ON_POSTGRESQL: Final = f"""
WITH decided AS (
    INSERT INTO transactions (transaction_id, order_id, state, created_at_ms, kind)
    VALUES (%(decided_transaction_id)s, %(order_id)s, %(decided_state)s, %(decided_created_at_ms)s, %(decided_kind)s)
    ON CONFLICT (transaction_id) DO NOTHING
    RETURNING order_id
), {ORDER_AND_ITEMS}"""
"""The three INSERTs as one statement, which is one round trip.

Separate statements need one round trip for BEGIN, for each INSERT and for COMMIT. In a program with many threads a round trip is
expensive, because the thread releases the interpreter lock and must acquire it again.
"""


def parameters_of(order: Order) -> Values:
    """Returns the parameters of ORDER_AND_ITEMS."""
    return order_values(order) | {
        "names": [item.name for item in order.items],
        "quantities": [item.quantity for item in order.items],
        "prices": [item.price_cents for item in order.items],
    }


def order_values(order: Order) -> Values:
    """Returns the row of a new order, without its items."""
    return {
        "order_id": order.order_id,
        "customer": order.customer,
        "total_cents": order.total_cents,
        "currency": order.currency,
        "idempotency_key": order.idempotency_key,
        "created_at_ms": order.created_at_ms,
        "state": order.state.value,
        "pay_until_ms": order.pay_until_ms,
    }


def item_values(order: Order) -> list[Values]:
    """Returns the rows of the order's items, in the same order."""
    return [
        {"order_id": order.order_id, "name": item.name, "quantity": item.quantity, "price_cents": item.price_cents}
        for item in order.items
    ]
