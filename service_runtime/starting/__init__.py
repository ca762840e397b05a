"""The start of a service's process, and its messages about failures."""
