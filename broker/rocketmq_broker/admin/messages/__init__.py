"""The commands `message`, `tail` and `send`, which find, follow and send messages."""
