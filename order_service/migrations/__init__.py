"""The order database's schema, step by step (Alembic)."""
