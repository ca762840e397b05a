"""What a credit is, and its rules; no database, broker, Celery or HTTP."""
