"""The running build: the broker's version, its interpreter, and whether its hot modules are compiled."""

from importlib.machinery import ExtensionFileLoader
from platform import python_implementation, python_version

from rocketmq_broker import __version__
from rocketmq_broker.message import record


def is_compiled() -> bool:
    """Returns whether mypyc compiled the hot modules. The source is the same either way."""
    return isinstance(record.__loader__, ExtensionFileLoader)


def version_text() -> str:
    """Returns the text that `--version` prints."""
    build = ", compiled" if is_compiled() else ""
    return f"rocketmq-broker {__version__}{build}, {python_implementation()} {python_version()}"
