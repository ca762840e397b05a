"""XA: both databases *prepare*, which stores the changes and keeps their locks. Then both commit, or both roll back.

Needs two PostgreSQL databases with max_prepared_transactions above 0: SQLite has no PREPARE TRANSACTION.
"""

import sys
from contextlib import closing
from pathlib import Path

import psycopg

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.halfway.services import call, die

TABLE = "CREATE TABLE IF NOT EXISTS {service} (order_id TEXT PRIMARY KEY, state TEXT NOT NULL)"
INSERT = "INSERT INTO {service} VALUES (%s, %s)"
LOG = "INSERT OR REPLACE INTO log VALUES (?, ?)"


def place(folder: Path, orders: str, credits: str, order_id: str, *, is_killed: bool = False) -> None:
    """Places an order with XA: prepares both databases, logs the decision, and commits both."""
    for url, service, state in ((orders, "orders", "PLACED"), (credits, "credits", "GIVEN")):
        with closing(psycopg.connect(url)) as connection:
            connection.execute(TABLE.format(service=service).encode())
            connection.commit()
            connection.tpc_begin(connection.xid(1, order_id, service))
            connection.execute(INSERT.format(service=service).encode(), (order_id, state))
            connection.tpc_prepare()
    call(folder, "log", (LOG, [order_id, "COMMIT"]))  # this decides
    if is_killed:
        end(folder, orders)
        die()
    recover(folder, orders, credits)


def end(folder: Path, url: str) -> None:
    """Ends each prepared transaction of a database: commits it if the log has the decision, and otherwise rolls it back."""
    with closing(psycopg.connect(url)) as connection:
        for xid in [xid for xid in connection.tpc_recover() if xid.database == connection.info.dbname]:
            logged = call(folder, "log", ("SELECT state FROM log WHERE order_id = ?", [xid.gtrid]))
            (connection.tpc_commit if logged else connection.tpc_rollback)(xid)


def recover(folder: Path, orders: str, credits: str) -> None:
    """Ends all prepared transactions of both databases, which hold locks until then.

    An operator must run this function after a kill.
    """
    for url in (orders, credits):
        end(folder, url)


if __name__ == "__main__":
    with until_interrupted():
        match Path(sys.argv[1]), sys.argv[2:4], sys.argv[4:]:
            case folder, [orders, credits], ["place", order_id, *kill]:
                place(folder, orders, credits, order_id, is_killed=kill == ["kill"])
            case folder, [orders, credits], ["recover"]:
                recover(folder, orders, credits)
