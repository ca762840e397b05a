"""A lock for resources that exist once on a machine: other test runs wait until it is free."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Waits until no other test process on this machine holds the resource, and locks it while the block runs."""
    with (Path(tempfile.gettempdir()) / f"transactional-messages-{what.replace(' ', '-')}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
