"""The credit worker, which is Celery with the task that credits the messages in the inbox, and a health check."""
