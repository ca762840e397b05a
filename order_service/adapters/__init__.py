"""How the order service reaches its database and the broker."""
