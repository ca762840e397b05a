"""What a machine has once: other runs of the tests on it wait for theirs."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Waits until no other test process on this machine has it."""
    with (Path(tempfile.gettempdir()) / f"transactional-messages-{what.replace(' ', '-')}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
