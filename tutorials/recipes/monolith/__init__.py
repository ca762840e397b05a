"""A program with one database, then split in two: what breaks, and how to repair it."""
