"""SQLite databases of a simulated world, with faults: used with SQLAlchemy, SQLModel or `sqlite3`."""
