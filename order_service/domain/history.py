"""The witness in a half message: the state of the sender's order database, as evidence for check-backs.

A missing transaction row means ROLLBACK only in the sender's own database, and only if that database is not older than the half
message. A restored backup may lack the row although the order exists. The sender therefore puts the current state of its database
into each half message, and a database that does not contain that state does not decide the transaction.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

PROPERTY: Final = "ORDER_HISTORY"
"""The property of the half message. Messages of older versions do not have it."""

_FORMAT: Final = re.compile(r"1:([0-9a-f]{32}):([0-9a-f]{32}):([0-9]{1,18}):([0-9A-Za-z]{0,64})")
_UNREADABLE: Final = "unreadable"


@dataclass(frozen=True, slots=True)
class Witness:
    """The state of the order database when the half message was sent."""

    database_id: str
    """The id that a migration gave the database. A copy of the database has the same id."""
    epoch_id: str
    """The id of the row that the sender inserted into `epochs` at its first order."""
    renewed_at_ms: int
    """The number that the sender last wrote into that row. It only increases."""
    transaction_id: str = ""
    """The newest transaction that the sender had committed; empty before the first one."""
    published_id: str = ""
    """The transaction of the message itself, if consumers can read the message. It is committed in the database. Not encoded."""

    def encode(self) -> str:
        """Returns the value of the property."""
        return f"1:{self.database_id}:{self.epoch_id}:{self.renewed_at_ms}:{self.transaction_id}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Parses the value of the property. An unreadable value becomes a witness that no database contains."""
        found = _FORMAT.fullmatch(text)
        if found is None:
            return cls(_UNREADABLE, _UNREADABLE, 0)
        database_id, epoch_id, renewed_at_ms, transaction_id = found.groups()
        return cls(database_id, epoch_id, int(renewed_at_ms), transaction_id)
