"""An order and its credit in two databases: Flask, SQLModel, Celery, and PySpark for the comparison."""
