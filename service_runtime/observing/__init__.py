"""The logs, metrics and traces of a service."""
