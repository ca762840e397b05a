"""The HTTP server and application of a service, with guards, responses, and health checks."""
