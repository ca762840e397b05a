"""The credit worker: Celery with the task that writes credits, the heartbeat by which others see it, and its health check."""
