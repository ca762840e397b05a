"""What the brokers hold, and how far consumer groups have come: `topics` and `groups`."""
