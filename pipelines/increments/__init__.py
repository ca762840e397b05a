"""Incremental runs: the high-water marks of the sources, the open histories, and the settled ones."""
