"""The inventory service's work on a message, based on its rules and on ports to its database and the broker."""
