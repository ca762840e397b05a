"""The commands `topics` and `groups`, which show topics and the progress of consumer groups."""
