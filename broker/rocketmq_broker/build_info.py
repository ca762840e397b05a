"""Information about the running build: version, interpreter, and whether it is compiled."""

from importlib.machinery import ExtensionFileLoader
from platform import python_implementation, python_version

from rocketmq_broker import __version__
from rocketmq_broker.message import record


def is_compiled() -> bool:
    """Returns True if the modules on the hot path are compiled by mypyc."""
    return isinstance(record.__loader__, ExtensionFileLoader)


def version_text() -> str:
    """Returns the text that `--version` prints."""
    build = ", compiled" if is_compiled() else ""
    return f"rocketmq-broker {__version__}{build}, {python_implementation()} {python_version()}"
