"""The entry points of the credit service: the HTTP application and the process."""
