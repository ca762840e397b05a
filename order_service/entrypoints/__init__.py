"""The entry points of the order service: the HTTP application and the process."""
