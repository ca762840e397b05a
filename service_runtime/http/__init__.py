"""The HTTP side of a service: the server, the application, its guards, its responses, and its health checks."""
