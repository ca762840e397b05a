"""Credits and their rules, independent of database, broker, Celery and HTTP."""
