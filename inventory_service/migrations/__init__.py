"""The inventory database's schema, step by step (Alembic)."""
