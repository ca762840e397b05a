"""The brokers' topics, and the progress of consumer groups: `topics` and `groups`."""
