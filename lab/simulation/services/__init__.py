"""The shop's services in simulated processes, with models of Celery, Redis and workers."""
