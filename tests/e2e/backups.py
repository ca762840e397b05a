"""Makes and restores a backup of a service's SQLite database while the service is running."""

import sqlite3
from contextlib import closing
from pathlib import Path


def copied(source: Path, target: Path) -> None:
    """Copies a database with SQLite's backup API, in one transaction, even if the target is in use."""
    with closing(sqlite3.connect(source, timeout=30)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)
