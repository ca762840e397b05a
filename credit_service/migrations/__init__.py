"""The credit database's schema, step by step (Alembic)."""
