"""The errors of a cluster."""


class ClusterMistake(Exception):
    """A cluster cannot be started as asked: its settings, or what its folder holds; the text says so on one line."""
