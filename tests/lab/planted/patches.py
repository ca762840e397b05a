"""Replaces functions, methods and properties of the production code at run time, and restores them.

A target is named `MODULE:NAME` or `MODULE:CLASS.NAME`. A function of a module is replaced in every module that imported it.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any


class PlantingFailed(Exception):
    """Raised if a target is missing or has another signature. The production code has changed since the bug was written."""


@dataclass(frozen=True, slots=True)
class PatchedName:
    """A name that was replaced, with its original value."""

    target: str
    owner: Any
    """The module or class that contains the name."""
    name: str
    before: Any
    after: Any


class Patches:
    """The replacements that plant one bug."""

    def __init__(self) -> None:
        """Creates an empty list of replacements."""
        self.made: list[PatchedName] = []

    def original(self, target: str) -> Any:
        """Returns the current function of a target. For a property, returns its getter. Raises PlantingFailed."""
        return _function_of(_found(target)[2])

    def replace(self, target: str, replacement: Callable[..., Any]) -> None:
        """Replaces a function, a method or a property's getter with one of the same signature.

        Raises PlantingFailed if the target is missing, or its signature differs.
        """
        owner, name, before = _found(target)
        _require_same_signature(target, _function_of(before), replacement)
        after = property(replacement) if isinstance(before, property) else replacement
        for place in _modules_with(before) if isinstance(owner, ModuleType) else [(owner, name)]:
            self.made.append(PatchedName(target, *place, before, after))
            setattr(*place, after)

    def undo(self) -> None:
        """Restores the original value of each replaced name, also in modules that imported the replacement."""
        for patched in reversed(self.made):
            setattr(patched.owner, patched.name, patched.before)
            if isinstance(patched.owner, ModuleType):
                for owner, name in _modules_with(patched.after):
                    setattr(owner, name, patched.before)
        self.made.clear()


def _found(target: str) -> tuple[Any, str, Any]:
    """Returns the target's owner, its name in the owner, and its current value. Raises PlantingFailed."""
    module, _, path = target.partition(":")
    *classes, name = path.split(".")
    try:
        owner: Any = importlib.import_module(module)
        for each in classes:
            owner = vars(owner)[each]
        return owner, name, vars(owner)[name]
    except (ImportError, KeyError) as error:
        raise PlantingFailed(f"target {target} not found; was it renamed or moved? {error!r}") from error


def _modules_with(value: Any) -> Iterator[tuple[Any, str]]:
    """Yields each loaded module that contains the value, with the value's name in the module."""
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            for name, held in list(vars(module).items()):
                if held is value:
                    yield module, name


def _function_of(value: Any) -> Any:
    return value.fget if isinstance(value, property) else value


def _require_same_signature(target: str, before: Any, after: Any) -> None:
    if _shape_of(before) != _shape_of(after):
        raise PlantingFailed(
            f"{target} has the signature {inspect.signature(before)}, but its replacement has {inspect.signature(after)}"
        )


def _shape_of(function: Any) -> tuple[bool, list[tuple[str, Any, Any]]]:
    """Returns the shape of a function: True if it is a coroutine function, and its parameters with their kinds and defaults."""
    parameters = inspect.signature(function).parameters.values()
    is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
    return is_async, [(each.name, each.kind, each.default) for each in parameters]
