"""The adapters of the credit service to its database, Redis and the broker."""
