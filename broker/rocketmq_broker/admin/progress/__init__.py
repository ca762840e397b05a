"""The commands `topics` and `groups`: topics, and the progress of consumer groups."""
