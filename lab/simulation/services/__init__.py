"""The shop's services in simulated processes. Celery, Redis and the workers are replaced by models."""
