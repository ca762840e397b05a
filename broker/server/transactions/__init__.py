"""Half messages, their transitions, check-backs and recovery. The rest of the broker uses what is exported here, and no more."""

from broker.server.transactions.transactional_messages import TransactionalMessages
from broker.server.transactions.transactions import HalfMessages, NoTransactions, Transactions, build_transactions

__all__ = ["HalfMessages", "NoTransactions", "TransactionalMessages", "Transactions", "build_transactions"]
