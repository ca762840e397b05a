"""The index, which maps the keys of messages to their commit log offsets."""
