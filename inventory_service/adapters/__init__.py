"""How the inventory service reaches its database and the broker."""
