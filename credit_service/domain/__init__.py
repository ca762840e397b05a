"""Credits and their rules; no database, broker, Celery or HTTP."""
