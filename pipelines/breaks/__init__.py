"""Breaks that live: what reconciliations found, from the first time it was seen until it is closed."""
