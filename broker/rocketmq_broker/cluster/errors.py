"""The error for a cluster that cannot be started."""


class ClusterMistake(Exception):
    """Raised if a cluster cannot be started, because of its settings or its folder. The message is one line."""
