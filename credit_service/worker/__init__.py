"""The credit worker, a Celery worker that credits the messages in the inbox, and its health check."""
