"""What the compose demo and the tutorials share: ports 8080 and 8081, which they tell their readers."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def the_fixed_ports() -> Iterator[None]:
    """Waits until no other test process on this machine has them."""
    with (Path(tempfile.gettempdir()) / "transactional-messages-fixed-ports").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
