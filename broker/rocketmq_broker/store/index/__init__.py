"""The index from keys to messages."""
