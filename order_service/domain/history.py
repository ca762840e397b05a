"""The witness in a half message: the database in which its local transaction runs.

An order database without a transaction's row may say ROLLBACK only if it is the sender's own, and not older than the half
message: a copy lacks the row too, although the order exists. So the sender names in each half message the present state of its
database, and a database that lacks that does not decide.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

PROPERTY: Final = "ORDER_HISTORY"
"""The half message's property. Messages of versions before it have none."""

_FORMAT: Final = re.compile(r"1:([0-9a-f]{32}):([0-9a-f]{32}):([0-9]{1,18}):([0-9A-Za-z]{0,64})")
_NOBODYS: Final = "unreadable"


@dataclass(frozen=True, slots=True)
class Witness:
    """The state of the order database when the half message was sent."""

    database_id: str
    """The id that the database was given by a migration; a copy has the same."""
    epoch_id: str
    """The id of the row that the sender wrote into the database at its first order."""
    renewed_at_ms: int
    """The sender's last number in that row; it only grows."""
    transaction_id: str = ""
    """The newest transaction whose local commit the sender knew; empty before the first one."""

    def encode(self) -> str:
        """Returns the value of the property."""
        return f"1:{self.database_id}:{self.epoch_id}:{self.renewed_at_ms}:{self.transaction_id}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads the witness in a property. An unreadable value becomes a witness that no database holds."""
        found = _FORMAT.fullmatch(text)
        if found is None:
            return cls(_NOBODYS, _NOBODYS, 0)
        database_id, epoch_id, renewed_at_ms, transaction_id = found.groups()
        return cls(database_id, epoch_id, int(renewed_at_ms), transaction_id)
