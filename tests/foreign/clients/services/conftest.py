"""The services' listeners behind Apache's own Python client, which speaks gRPC: its threads and channels take most of the time.

Fixtures of the services' own component tests: the database in memory, and what they write with it.
"""

from tests.component.conftest import database_folder, sqlite_engine, sqlite_url

__all__ = ["database_folder", "sqlite_engine", "sqlite_url"]
