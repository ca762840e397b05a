"""What the inventory service does with a message, in terms of its rules and of ports to its database and the broker."""
