"""The inventory service's access to its database and the broker."""
