"""The credit service's access to its database, Redis and the broker."""
