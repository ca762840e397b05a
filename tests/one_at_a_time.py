"""A lock for a resource that exists only once on a machine. Other test runs wait until the resource is free."""

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
