"""The credit service's entry points: HTTP, and its processes."""
