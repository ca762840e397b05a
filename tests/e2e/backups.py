"""A backup of a service's SQLite database, made and restored while the service is at work."""

import sqlite3
from contextlib import closing
from pathlib import Path


def copied(source: Path, target: Path) -> None:
    """Copies by SQLite's backup: into a database that is at work, all of it in one transaction."""
    with closing(sqlite3.connect(source, timeout=30)) as old, closing(sqlite3.connect(target, timeout=30)) as new:
        old.backup(new)
