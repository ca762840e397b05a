"""The adapters of the inventory service to its database and the broker."""
