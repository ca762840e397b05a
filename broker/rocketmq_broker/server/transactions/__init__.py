"""Half messages, their transitions, check-backs and recovery. The rest of the broker uses what is exported here, and no more."""

from rocketmq_broker.server.transactions.build import NoTransactions, Transactions, build_transactions
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages

__all__ = ["NoTransactions", "TransactionalMessages", "Transactions", "build_transactions"]
