"""The inventory service's entry points: HTTP, and the process."""
