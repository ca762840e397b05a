"""A service's HTTP: the server, the application, what guards it, what its answers look like, and its health checks."""
