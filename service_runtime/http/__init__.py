"""A service's HTTP: the server, the application, its guards, its answers, and its health checks."""
