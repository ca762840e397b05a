"""The Alembic migrations of the order database."""
