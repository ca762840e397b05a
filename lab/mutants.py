"""Plants small faults in the code, one at a time, and shows which of them no test notices: `python -m lab.mutants --count 20`.

A mutant is the code with one small change, such as `<` instead of `<=`, or a call that is left out. A seed draws the mutants.
Each is planted in a copy of the repository, and the tests of its package run until one fails: first those that name its module,
then the others. In the end the tests that failed run without a mutant: one that fails again decides nothing. A mutant that
survives shows a missing test, a line that can be deleted, or a change without an effect. `--first 57` continues a run that was
stopped after 56 mutants.
"""

import ast
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from rocketmq_broker.stop_signals import until_interrupted

ROOT: Final = Path(__file__).resolve().parents[1]
_SERVICES: Final = "tests/component/test_services_in_one_world.py"
TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "broker/rocketmq_broker/store": (
        "tests/unit/store", "tests/unit/server", "tests/component/store", "tests/component/server",
    ),
    "broker/rocketmq_broker/transaction": (
        "tests/unit/transaction", "tests/unit/server/transactions", "tests/component/client",
    ),
    "broker/rocketmq_broker/server": (
        "tests/unit/server", "tests/component/server", "tests/component/app", "tests/component/client",
    ),
    "broker/rocketmq_broker/client": ("tests/unit/client", "tests/component/client"),
    "order_service": ("tests/unit/order_service", "tests/component/order_service", _SERVICES),
    "credit_service": ("tests/unit/credit_service", "tests/component/credit_service", _SERVICES),
    "pipelines": ("tests/unit/pipelines", "tests/component/pipelines"),
}  # fmt: skip
"""Maps each mutated package to its tests, in the order in which they run."""
PYTHONPATH: Final = (".", "broker", "packages/commitlog", "packages/faststream-rocketmq")
LIMIT_S: Final = 600
"""The time after which a test run counts as failed, in seconds."""
TEST_LIMIT_S: Final = 60
"""The time after which one test counts as failed, in seconds. `make test` waits 300 s."""
_SWAPPED: Final[Mapping[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.Break: ast.Continue, ast.Continue: ast.Break,
}  # fmt: skip
_CHANGED: Final = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)
"""The conditions that have a change of their own."""
_REPLACED: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place in a file."""

    file: str
    line: int
    before: str
    after: str
    begin: int
    """The position of the changed text in the file, in bytes."""

    def planted_in(self, source: bytes) -> bytes:
        """Returns the source with the change."""
        return source[: self.begin] + self.after.encode() + source[self.begin + len(self.before.encode()) :]

    def __str__(self) -> str:
        """Returns the place and the change, on one line."""
        return f"{self.file}:{self.line}: {' '.join(self.before.split())}  ->  {' '.join(self.after.split())}"


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Returns all mutants of a file, sorted by position. Annotations, docstrings and log lines have none."""
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text.encode()))
    found = []
    for node, changed in _changes(ast.parse(source)):
        before, after = ast.get_source_segment(source, node) or "", ast.unparse(changed)
        begin = starts[node.lineno - 1] + node.col_offset
        found.append(Mutant(file, node.lineno, before, f"({after})" if isinstance(node, ast.expr) else after, begin))
    return sorted(found, key=lambda mutant: (mutant.begin, mutant.after))


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """Yields the places that can be changed, each with its replacement."""
    for node in _code(tree):
        match node:
            case ast.Compare(left=left, ops=[*first, operator], comparators=compared) if type(operator) in _SWAPPED:
                yield node, ast.Compare(left, [*first, _SWAPPED[type(operator)]()], compared)  # type: ignore[list-item]
            case ast.BoolOp(op=operator, values=values):
                yield node, ast.BoolOp(_SWAPPED[type(operator)](), values)  # type: ignore[arg-type]
            case ast.BinOp(left, operator, right) if type(operator) in _SWAPPED and not _is_text(left, right):
                yield node, ast.BinOp(left, _SWAPPED[type(operator)](), right)  # type: ignore[arg-type]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield node, operand
            case ast.Constant(value=bool() as flag):
                yield node, ast.Constant(not flag)
            case ast.Constant(value=int() as number):
                yield node, ast.Constant(number + 1)
            case ast.Call(func=ast.Name(name), args=[first, *others]) if name in _REPLACED:
                yield node, ast.Call(ast.Name(_REPLACED[name]), [first] if name == "sorted" else [first, *others], [])
            case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in ("None", "True", "False"):
                yield node, ast.Return(ast.Constant(None))
            case ast.Break() | ast.Continue():
                yield node, _SWAPPED[type(node)]()
            case ast.Expr(value=ast.Call() | ast.Await()) if not _is_logged(node.value):
                yield node, ast.Pass()
            case ast.Raise() | ast.Delete() | ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
                yield node, ast.Pass()
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(test, _CHANGED):
                yield test, ast.UnaryOp(ast.Not(), test)


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a tree without annotations, decorators, formatted strings, log lines and `strict=`."""
    if isinstance(tree, ast.keyword) and tree.arg == "strict":
        return
    yield tree
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not _is_logged(child):
                yield from _code(child)


def _is_logged(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(call, ast.Call) and ast.unparse(call.func).startswith("logger.")


def _is_text(*operands: ast.expr) -> bool:
    return any(
        isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for node in operands
    )


def drawn(root: Path, packages: Sequence[str], seed: int, count: int) -> list[Mutant]:
    """Draws mutants of these packages. Each place is as likely as any other, and each seed gives the same ones."""
    files = sorted(path for package in packages for path in (root / package).rglob("*.py") if "migrations" not in path.parts)
    places = [mutant for path in files for mutant in mutants_of(path.relative_to(root).as_posix(), path.read_text())]
    return random.Random(seed).sample(places, min(count, len(places)))


def runs_of(mutant: Mutant, copy: Path) -> list[list[str]]:
    """Returns the test runs for a mutant: first those that import its module or have its name, then each folder.

    Without such tests, those that import another module of its package come first.
    """
    (tests,) = (tests for package, tests in TESTS.items() if mutant.file.startswith(f"{package}/"))
    module = mutant.file.removeprefix("broker/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    files = [path for folder in tests for path in sorted((copy / folder).rglob("test_*.py"))]
    texts = {str(path.relative_to(copy)): f"{path} {path.read_text()}" for path in files}
    names = (f"from {module} import", f"test_{Path(mutant.file).stem}")
    near = [path for path, text in texts.items() if any(name in text for name in names)]
    near = near or [path for path, text in texts.items() if f"from {module.rpartition('.')[0]}." in text]
    return [run for run in (near, *([folder] for folder in tests)) if run]


def failures(copy: Path, tests: Sequence[str], *options: str) -> list[str]:
    """Runs tests in a copy, and returns those that failed, or the names of all if pytest itself fails or does not end."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(copy / folder) for folder in PYTHONPATH),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_LIMIT_S}", *options, *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return [*tests]
    lines = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))]
    return ([name.split("[")[0] for name in lines] or [*tests]) if done.returncode else []


def noticed_by(mutant: Mutant, copy: Path, runs: Sequence[Sequence[str]]) -> list[str]:
    """Returns the tests that fail first with the mutant in this copy, or none if it survives. The copy is restored."""
    path = copy / mutant.file
    source = path.read_bytes()
    path.write_bytes(mutant.planted_in(source))
    try:
        return next(filter(None, (failures(copy, tests, "-x") for tests in runs)), [])
    finally:
        path.write_bytes(source)


def main(
    count: Annotated[int, typer.Option(help="The number of mutants.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="The seed that draws them.")] = 1,
    package: Annotated[list[str] | None, typer.Option(help="A package to mutate; by default all in TESTS.")] = None,
    first: Annotated[int, typer.Option(help="The first of the drawn mutants to plant.", min=1)] = 1,
) -> None:
    """Draws mutants and prints for each the test that noticed it, and in the end those that were not noticed."""
    packages = package or list(TESTS)
    unknown = sorted({*packages} - {*TESTS})
    if unknown:
        raise typer.BadParameter(f"no tests are known for {', '.join(unknown)}; choose from {', '.join(TESTS)}")
    found: dict[Mutant, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
        # Two mutants of a file may have the same size and time: bytecode is valid for the content of its source alone.
        compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *TESTS]
        subprocess.run(compiled, cwd=copy, check=True)
        for number, mutant in enumerate(drawn(copy, packages, seed, count)[first - 1 :], first):
            found[mutant] = noticed_by(mutant, copy, runs_of(mutant, copy))
            typer.echo(f"{number:4} {mutant}\n     {' '.join(found[mutant]) or 'SURVIVED'}")
        named = sorted({test for tests in found.values() for test in tests})
        broken = {*failures(copy, named)} if named else set()
    survived = [mutant for mutant, tests in found.items() if not tests]
    undecided = [mutant for mutant, tests in found.items() if broken.intersection(tests)]
    noticed = len(found) - len(survived) - len(undecided)
    typer.echo(f"seed {seed}: {noticed} of {len(found)} mutants noticed, {len(survived)} survived, {len(undecided)} undecided")
    for mutant in [*survived, *undecided]:
        typer.echo(f"  {mutant}  {' '.join(found[mutant])}")


if __name__ == "__main__":
    with until_interrupted():
        typer.run(main)
