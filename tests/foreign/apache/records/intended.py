"""The intended differences between this broker's records and Apache's, with reasons. Other differences are mistakes."""

import re
from dataclasses import dataclass

from tests.foreign.apache.records.comparison import Difference

STAY = "half messages stay where they are: docs/decisions/0002"
FLAG = "Apache's copies of a half message lose its flag (renewHalfMessageInner), and so does what is made of them"
NOBODY_WAITS = "nobody waits for an op message: WAIT is ten bytes that nobody reads"
AS_SENT = "a producer is asked about the message as it sent it; Apache's copy says that nobody waits for it"
NAMED = "recovery finds by it which half message was discarded, and which discarded message was resumed"
AT_ONCE = "Apache lets a dead letter wait whose consumer sent it with a delay level; ours is there at once"
FLAG_KEPT = "Apache stores a compressed reply without the flag that says so: nobody could read it"


@dataclass(frozen=True, slots=True)
class Intended:
    """Intended differences: three regular expressions and the reason."""

    way: str
    what: str
    field: str
    reason: str

    def covers(self, way: str, difference: Difference) -> bool:
        """Returns True if this difference is intended."""
        found = (way, difference.what, difference.field)
        return all(re.fullmatch(*pair) for pair in zip((self.way, self.what, self.field), found, strict=True))


CHECKED = "committed_after_a_check|discarded_resumed_and_committed"
TABLE = (
    Intended(CHECKED, r"half message \d+|op message of half message.*", "is there", STAY),
    Intended(CHECKED, r"check-back \d", "header (tranStateTableOffset|commitLogOffset|offsetMsgId)|queueOffset", STAY),
    Intended("committed_after_a_check", "delivered message", "preparedTransactionOffset", STAY),
    Intended(CHECKED, "check-back 2|(delivered|discarded|resumed half) message", "flag", FLAG),
    Intended(CHECKED, r"check-back \d", "property WAIT", AS_SENT),
    Intended(".*", "op message of .*", "property WAIT", NOBODY_WAITS),
    Intended("discarded_resumed_and_committed", "discarded message", "preparedTransactionOffset", NAMED),
    Intended("discarded_resumed_and_committed", "(delivered|resumed half) message", "property RESUMED_FROM", NAMED),
    Intended("given_up_by_its_consumer", "waiting message", "is there", AT_ONCE),
    Intended("given_up_by_its_consumer", "dead letter", "property (REAL_TOPIC|REAL_QID|WAIT)", AT_ONCE),
    Intended("replied_compressed", "delivered message", "sysFlag", FLAG_KEPT),
)
