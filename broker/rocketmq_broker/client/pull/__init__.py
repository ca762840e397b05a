"""Pull consumers, and the consumer offsets of groups."""
