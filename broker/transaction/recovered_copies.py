"""Transactions of which a broker before this one wrote several half messages, found by what the copies share."""

from __future__ import annotations

from broker.transaction.pending import PendingTransaction

Identity = tuple[str | None, str, int, bytes, str | None]
"""Transaction id, producer group, born timestamp, born host, resumed from (HalfMessage.identity)."""


class RecoveredCopies:
    """What lets a late decision about a copy from before the restart reach its transaction."""

    def __init__(self) -> None:
        self._transactions: dict[Identity, PendingTransaction] = {}

    def add(self, identity: Identity, transaction: PendingTransaction) -> None:
        """The transaction that the newest of the copies stands for."""
        self._transactions[identity] = transaction

    def find(self, identity: Identity) -> PendingTransaction | None:
        """The transaction that a copy belongs to, decided or not."""
        return self._transactions.get(identity)
