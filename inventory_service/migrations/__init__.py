"""The Alembic migrations of the inventory database."""
