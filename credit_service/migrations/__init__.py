"""The Alembic migrations of the credit database."""
