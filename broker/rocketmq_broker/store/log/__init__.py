"""The commit log: segments of records."""
