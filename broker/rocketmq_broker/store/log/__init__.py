"""The commit log and its segments, which contain records."""
