"""Incremental runs: the read part of each source, the open histories, and the settled ones."""
