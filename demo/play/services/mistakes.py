"""Implements three mistakes that articles about messaging recommend, as a service would make them. Buttons enable them."""

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Engine, text
from sqlmodel import Session

from credit_service.adapters.ledger import entry_values
from credit_service.adapters.tables import CreditDatabase
from credit_service.service_layer.crediting import entry_of
from demo.play.services.side import ORDER_SERVICE, PageClientLoop, ProcessDied, Surroundings, short_id
from order_messages.states import TransactionKind, TransactionState
from order_service.adapters.local_transaction import insert_order
from order_service.domain.order import Item, Order
from order_service.service_layer.placing import order_message
from rocketmq_broker.client import ClientError, LocalTransactionState, Producer
from rocketmq_broker.databases.inbox import InboxMessage
from rocketmq_broker.message import Message, MessageExt

_CREDITS: Final = CreditDatabase.metadata.tables["credits"]
_SENDER: Final = "order_service_sender"
_UNIQUE: Final = "uq_credits_order_id_kind"


class ForgetfulAnswers:
    """The first mistake: decides check-backs from memory, and rolls back transactions that are not in memory."""

    def __init__(self) -> None:
        """Creates an empty memory, as in a new process."""
        self._committed: set[str | None] = set()

    def remember(self, message: Message) -> None:
        """Records that the message's local transaction was committed."""
        self._committed.add(message.transaction_id)

    def answer(self, message: MessageExt) -> LocalTransactionState:
        """Returns the decision for a check-back: COMMIT for a recorded transaction, otherwise ROLLBACK. Never returns UNKNOWN."""
        is_known = message.transaction_id in self._committed
        return LocalTransactionState.COMMIT_MESSAGE if is_known else LocalTransactionState.ROLLBACK_MESSAGE


def drop_unique_key(engine: Engine) -> None:
    """Rebuilds the ledger's table without the unique key of order and kind (the first part of the second mistake)."""
    with engine.begin() as connection:
        definition = str(connection.execute(text("SELECT sql FROM sqlite_master WHERE name = 'credits'")).scalar_one())
        lines = [line for line in definition.splitlines() if _UNIQUE not in line]
        without_key = "\n".join(lines).replace("credits", "credits_new", 1)
        without_key = without_key.rstrip().removesuffix(")").rstrip().removesuffix(",") + "\n)"
        connection.execute(text(without_key))
        connection.execute(text("INSERT INTO credits_new SELECT * FROM credits"))
        connection.execute(text("DROP TABLE credits"))
        connection.execute(text("ALTER TABLE credits_new RENAME TO credits"))


def credit_each_message(session: Session, messages: Sequence[InboxMessage], now_ms: int) -> bool:
    """Credits each message without checking for an earlier credit (the second part of the second mistake).

    Returns True.
    """
    connection = session.connection()
    for message in messages:
        entry = entry_of(message)
        connection.execute(_CREDITS.insert(), entry_values(entry, now_ms))
        balance = "INSERT INTO balances VALUES (:customer, :points) ON CONFLICT DO UPDATE SET points = points + :points"
        connection.execute(text(balance), {"customer": entry.customer, "points": entry.points})
    return True


def send_inside(engine: Engine, around: Surroundings, customer: str, amount: int, *, dies: Callable[[], bool]) -> None:
    """Sends a plain message inside the database transaction, and commits afterwards (the third mistake).

    `dies` returns True if the process must end before the commit. ProcessDied is then raised, and the database rolls
    back, but the message has been sent.
    """
    world, loop = around.world, PageClientLoop(around.loop)
    order = Order(
        order_id=str(world.new_uuid()), customer=customer, items=(Item("book", 1, amount),), currency="EUR",
        created_at_ms=world.wall_ms(),
    )  # fmt: skip
    name = short_id(order.order_id)
    producer = Producer(_SENDER, namesrv_addr=around.namesrv_addr)
    loop.run(producer.start())
    transaction = {
        "transaction_id": order.order_id, "order_id": order.order_id, "state": TransactionState.COMMITTED.value,
        "created_at_ms": order.created_at_ms, "kind": TransactionKind.ORDER.value,
    }  # fmt: skip
    try:
        with engine.begin() as connection:
            insert_order(connection, order, transaction)
            loop.run(producer.send(order_message(order)))
            around.note(
                ORDER_SERVICE,
                f"order {name} is sent before the local commit",
                "message",
            )
            if dies():
                raise ProcessDied
        around.note(ORDER_SERVICE, f"local commit: order {name} is in the database", "commit")
    except ProcessDied:
        around.note(
            ORDER_SERVICE,
            f"the database rolls back: it has no order {name}",
            "fault",
        )
        raise
    except ClientError as error:
        around.note(ORDER_SERVICE, f"order {name} could not be sent: {error}", "refused")
    finally:
        loop.run(producer.shutdown())
