"""The credit worker, which is Celery with the tasks that write credits, a heartbeat in Redis, and a health check."""
