"""XA: both databases *prepare*, which stores the changes and keeps their locks. Then both commit, or both roll back."""

from pathlib import Path

from tutorials.halfway.postgresql import connected
from tutorials.halfway.services import die, log, state_of

PLACE = "INSERT INTO orders VALUES (%s, 'PLACED')"
CREDIT = "INSERT INTO credits VALUES (%s, 'GIVEN')"


def place(folder: Path, order_id: str, *, is_killed: bool = False) -> None:
    """Places an order with XA: prepares both databases, decides, and ends the transaction. `is_killed` kills halfway."""
    for service, statement in (("orders", PLACE), ("credits", CREDIT)):
        with connected(service) as connection:
            connection.tpc_begin(connection.xid(1, order_id, service))
            connection.execute(statement, [order_id])
            connection.tpc_prepare()
    log(folder, order_id, "COMMIT")  # this decides
    if is_killed:
        end(folder, "orders")
        die()
    recover(folder)


def end(folder: Path, service: str) -> None:
    """Ends each prepared transaction of a database: commits it if the log has the decision, and otherwise rolls it back."""
    with connected(service) as connection:
        for xid in [xid for xid in connection.tpc_recover() if xid.database == connection.info.dbname]:
            is_decided = state_of(folder, "log", xid.gtrid) == "COMMIT"
            (connection.tpc_commit if is_decided else connection.tpc_rollback)(xid)


def recover(folder: Path) -> None:
    """Ends all prepared transactions of both databases, which hold locks until then. Someone must start this after a kill."""
    for service in ("orders", "credits"):
        end(folder, service)
