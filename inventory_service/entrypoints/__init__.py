"""The entry points of the inventory service, which are the HTTP application and the process."""
