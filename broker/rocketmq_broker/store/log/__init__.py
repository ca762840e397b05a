"""The commit log, its segments and the verification of its records."""
