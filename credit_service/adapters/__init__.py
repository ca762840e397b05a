"""How the credit service reaches its database, Redis and the broker."""
