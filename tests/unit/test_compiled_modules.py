"""Tests which modules are compiled and which must not be compiled, and that tests of a compiled build use that build."""

import ast
import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from inspect import getmembers, isclass
from pathlib import Path

import msgspec
import pytest

from rocketmq_broker.build_info import is_compiled, version_text
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.server.schedule.delay_levels import Place
from rocketmq_broker.store import Appended
from rocketmq_broker.store.queues.dispatch import DispatchRequest
from rocketmq_broker.transaction.decision import EndDecision, EndRequest
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "broker" / "build_backend"))

from compiled_modules import COMPILED_MODULES, COMPILED_VARIABLE, compiled_paths  # noqa: E402

BROKER = ROOT / "broker"
PATHS = {path.relative_to(BROKER).as_posix(): path for path in sorted(BROKER.glob("rocketmq_broker/**/*.py"))}
compiled = pytest.mark.parametrize("module", COMPILED_MODULES)


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def last_name(expression: ast.expr) -> str:
    """Returns the last part of a name: `Struct` for `Struct`, `msgspec.Struct` and `Struct[int]`."""
    return ast.unparse(expression).partition("[")[0].rpartition(".")[2]


def tree_of(module: str) -> ast.Module:
    return parsed(BROKER / f"{module.replace('.', '/')}.py")


def test_the_list_names_modules_that_exist_in_order_and_once() -> None:
    assert set(compiled_paths()) <= PATHS.keys()
    assert sorted(set(COMPILED_MODULES)) == list(COMPILED_MODULES)


@compiled
def test_no_compiled_module_defines_a_struct(module: str) -> None:
    """A compiled struct would accept values from peers that its annotations do not allow."""
    members = getmembers(importlib.import_module(module), isclass)
    assert not [name for name, member in members if member.__module__ == module and issubclass(member, msgspec.Struct)]


@compiled
def test_no_compiled_module_has_a_coroutine(module: str) -> None:
    """Asyncio crashes the interpreter when it formats a future of a compiled coroutine."""
    assert not [node.name for node in ast.walk(tree_of(module)) if isinstance(node, ast.AsyncFunctionDef)]


@pytest.mark.parametrize(
    "made",
    [Appended, DispatchRequest, EndDecision, EndRequest, InnerMessage, PendingTransaction, Place],
    ids=lambda made: made.__name__,
)
def test_a_class_of_which_each_message_makes_an_instance_is_plain(made: type) -> None:
    """Compiled code calls the constructor of a plain class directly. That of a named tuple or a dataclass is interpreted."""
    assert made.__module__ in COMPILED_MODULES
    assert not issubclass(made, tuple)
    assert not is_dataclass(made)


def test_no_interpreted_class_inherits_from_a_compiled_one() -> None:
    """An interpreted subclass of a compiled class raises an error when its module is imported."""
    ours = {definition.name for path in compiled_paths() for definition in classes(parsed(BROKER / path))}
    interpreted = [parsed(path) for name, path in PATHS.items() if name not in compiled_paths()]
    assert not ours & {last_name(base) for tree in interpreted for definition in classes(tree) for base in definition.bases}


def test_the_version_says_compiled_where_it_is() -> None:
    assert (", compiled, " in version_text()) == is_compiled()


def test_the_tests_run_the_build_that_they_were_asked_to_test() -> None:
    assert is_compiled() == (os.environ.get(COMPILED_VARIABLE) == "1")


@compiled
def test_a_compiled_build_has_compiled_what_the_list_names(module: str) -> None:
    origin = importlib.import_module(module).__file__
    assert origin is not None
    assert origin.endswith(".so") == is_compiled()
