"""The order service's entry points: HTTP, and the process."""
