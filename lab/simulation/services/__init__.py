"""The shop's services in simulated processes. Celery and Redis are replaced by models."""
