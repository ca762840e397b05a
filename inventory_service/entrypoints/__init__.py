"""The entry points of the inventory service: the HTTP application and the process."""
