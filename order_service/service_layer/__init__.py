"""The use cases of the order service, based on its rules and on ports to the database and the broker."""
