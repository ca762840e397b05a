"""One program with one database, then the same split in two: what breaks, and what mends it."""
