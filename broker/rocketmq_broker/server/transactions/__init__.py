"""Implements transactions: half messages, their state changes, check-backs and recovery.

Other packages only use the names exported here.
"""

from rocketmq_broker.server.transactions.build import NoTransactions, Transactions, build_transactions
from rocketmq_broker.server.transactions.transactional_messages import TransactionalMessages

__all__ = ["NoTransactions", "TransactionalMessages", "Transactions", "build_transactions"]
