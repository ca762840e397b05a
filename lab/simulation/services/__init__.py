"""The shop's services in simulated processes, with the models of what stays outside: Celery, Redis and its workers."""
