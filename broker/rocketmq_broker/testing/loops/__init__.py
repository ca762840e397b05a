"""Event loops that need no sockets, and a function that skips their idle periods."""
