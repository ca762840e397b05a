"""A recipe: an order and its credit in two databases, with Flask, SQLModel, Celery, and PySpark for the comparison."""
