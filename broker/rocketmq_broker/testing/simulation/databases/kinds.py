"""The kinds of faults of databases in a plan. `where` is the name of the database, or of the process that is killed."""

from typing import Final

REFUSE: Final = "database.refuse"
"""The database refuses statements with the probability `rate` for `for_s` seconds."""
HANG: Final = "database.hang"
"""The database does not respond for `for_s` seconds, and then continues."""
LOST_ANSWER: Final = "database.lost_answer"
"""The database stores the `nth` database commit after `at_s`, and its response is lost with the connection."""
LOCKED: Final = "database.locked"
"""Another writer holds the lock of the database for `for_s` seconds."""
KILL_AT_DATABASE: Final = "process.kill_at_database"
"""The process is killed at its `nth` statement or database commit after `at_s`. `when` is "before" or "after" the statement."""
