"""Event loops that need no sockets, and what a loop may skip while nothing happens."""
