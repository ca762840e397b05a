"""The entry points of the order service, which are the HTTP application and the process."""
