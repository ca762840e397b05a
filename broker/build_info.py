"""What runs here: the broker's version and its interpreter."""

from platform import python_implementation, python_version

from broker import __version__


def version_text() -> str:
    """What `--version` prints."""
    return f"rocketmq-broker {__version__}, {python_implementation()} {python_version()}"
