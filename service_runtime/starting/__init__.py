"""The start of a service's process, and its error messages."""
