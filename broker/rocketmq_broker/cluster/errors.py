"""The error of a cluster."""


class ClusterMistake(Exception):
    """Raised if a cluster cannot be started, because of its settings or its folder. The message is one line."""
