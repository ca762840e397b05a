"""What the order service does, in terms of its rules and of ports to the database and the broker."""
