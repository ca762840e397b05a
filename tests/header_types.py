"""The classes of headers, by name."""

import pkgutil
from importlib import import_module

from rocketmq_broker.protocol import CommandHeader, headers


def header_types() -> dict[str, type[CommandHeader]]:
    """Returns the class of each header that a module of the package `headers` defines."""
    modules = [import_module(found.name) for found in pkgutil.iter_modules(headers.__path__, f"{headers.__name__}.")]
    return {
        name: member
        for module in modules
        for name, member in vars(module).items()
        if isinstance(member, type) and issubclass(member, CommandHeader) and member.__module__ == module.__name__
    }
