"""Plants small faults in the code, one at a time, and shows which of them no test notices: `python -m lab.mutants --count 20`.

A mutant is the code with one small change, such as `<` instead of `<=`, or a call that is left out. A seed draws the mutants.
First all tests run once, which takes some ten minutes, and coverage.py records which tests execute which line; the record is kept
for the commit. It does not know what a test executes in another process. Then each mutant is planted in a copy of the repository,
and the tests that execute its line run until one fails, the quickest first. In the end the tests that failed run without a
mutant: one that fails again decides nothing. A mutant that survives shows a missing test, a line that can be deleted, or a change
without an effect. `--first 57` continues a run that was stopped after 56 mutants.
"""

if __name__ == "__main__":
    from rocketmq_broker.stop_signals import exit_at_once_on_ctrl_c

    exit_at_once_on_ctrl_c()

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Final
from xml.etree import ElementTree

import typer
from coverage import CoverageData

from rocketmq_broker.stop_signals import until_interrupted

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = (
    *(f"broker/rocketmq_broker/{package}" for package in ("store", "transaction", "server", "client")),
    "order_service", "credit_service", "pipelines",
)  # fmt: skip
"""The folders that can be mutated."""
TESTS: Final = (
    *(f"tests/{kind}/{package}" for kind in ("unit", "component") for package in (
        "store", "server", "client", "order_service", "credit_service", "pipelines",
    )),
    "tests/unit/transaction", "tests/component/app", "tests/component/test_services_in_one_world.py",
)  # fmt: skip
"""The tests that may notice a mutant."""
PYTHONPATH: Final = (".", "broker", "packages/commitlog", "packages/faststream-rocketmq")
STARTING_S: Final = 60
"""A run of tests counts as failed when it takes three times as long as its tests took once, and these seconds."""
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


class ExecutedLines:
    """Which tests execute which line, and how long each test takes."""

    def __init__(self, home: Path) -> None:
        """Reads what `record` wrote into the folder."""
        self._lines = CoverageData(str(home / "lines"))
        self._lines.read()
        self.seconds: dict[str, float] = {}
        for case in ElementTree.parse(home / "times.xml").iter("testcase"):
            test = f"{case.get('classname', '').replace('.', '/')}.py::{_function(case.get('name', ''))}"
            self.seconds[test] = self.seconds.get(test, 0) + float(case.get("time", 0))

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Returns the tests that execute the mutant's line, the quickest first.

        For a line that runs when its module is imported, returns the tests that execute any line of the file.
        """
        lines = {number: {*map(_function, tests)} for number, tests in self._lines.contexts_by_lineno(mutant.file).items()}
        # Of a statement with several lines, not each one is recorded: its first line stands for it.
        nearest = max((number for number in lines if number <= mutant.line), default=0)
        tests = lines.get(nearest, set()) - {""} or {test for of_line in lines.values() for test in of_line if test}
        return sorted(tests, key=lambda test: (self.seconds.get(test, 0), test))


def _function(context: str) -> str:
    """Returns the test function of a context, which ends with its parameters and its phase."""
    return context.partition("|")[0].partition("[")[0]


def record(copy: Path, home: Path) -> None:
    """Runs all tests in a copy of the repository, and writes which lines each executes, and its seconds, into an empty folder.

    Prints the tests that fail. Some do only because they are recorded, such as those that forbid a unit test to open a file.
    """
    settings = home / "coverage.ini"
    settings.write_text(
        f"[run]\nsource = {','.join(PACKAGES)}\ndata_file = {home / 'lines'}\n"
        "concurrency = thread,greenlet\nrelative_files = true\n"
    )
    options = (
        "-n", str(os.cpu_count()), "--dist", "loadfile", f"--junitxml={home / 'times.xml'}",
        "--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=", f"--timeout={10 * TEST_LIMIT_S}",
    )  # fmt: skip
    failed = failures(copy, TESTS, *options)
    if failed:
        typer.echo(f"{len(failed)} tests failed while they were recorded: {' '.join(failed[:10])}", err=True)


def failures(copy: Path, tests: Collection[str], *options: str, limit_s: float | None = None) -> list[str]:
    """Runs tests in a copy, and returns those that failed, or the names of all if pytest itself fails or does not end."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(copy / folder) for folder in PYTHONPATH),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as named:
        named.write("\n".join(tests))
        named.flush()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_LIMIT_S}", *options]
        try:
            done = subprocess.run(
                [*command, f"@{named.name}"],
                cwd=copy,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [*tests]
    lines = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))]
    return ([*map(_function, lines)] or [*tests]) if done.returncode else []


def noticed_by(mutant: Mutant, copy: Path, tests: Sequence[str], limit_s: float | None = None) -> list[str]:
    """Returns the tests that fail first with the mutant in this copy, or none if it survives. The copy is restored."""
    path = copy / mutant.file
    source = path.read_bytes()
    path.write_bytes(mutant.planted_in(source))
    try:
        return failures(copy, tests, "-x", limit_s=limit_s) if tests else []
    finally:
        path.write_bytes(source)


def cloned(folder: Path) -> Path:
    """Returns a new copy of the repository's last commit, whose bytecode is valid for the content of its source alone.

    Two mutants of a file may have the same size and time.
    """
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *PACKAGES]
    subprocess.run(compiled, cwd=folder, check=True)
    return folder


def main(
    count: Annotated[int, typer.Option(help="The number of mutants.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="The seed that draws them.")] = 1,
    package: Annotated[list[str] | None, typer.Option(help="A package to mutate; by default all in PACKAGES.")] = None,
    first: Annotated[int, typer.Option(help="The first of the drawn mutants to plant.", min=1)] = 1,
) -> None:
    """Draws mutants and prints for each the test that noticed it, and in the end those that were not noticed."""
    packages = package or PACKAGES
    unknown = sorted({*packages} - {*PACKAGES})
    if unknown:
        raise typer.BadParameter(f"cannot mutate {', '.join(unknown)}; choose from {', '.join(PACKAGES)}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        clones = [cloned(Path(folder) / f"copy-{number}") for number in range(os.cpu_count() or 1)]
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        home = ROOT / "build" / "mutants" / commit
        if not (home / "times.xml").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            typer.echo("recording which tests execute which line: some ten minutes", err=True)
            record(clones[0], home)
        by_line = ExecutedLines(home)
        mutants = drawn(clones[0], packages, seed, count)[first - 1 :]
        copies: SimpleQueue[Path] = SimpleQueue()
        for clone in clones:
            copies.put(clone)

        def plant(mutant: Mutant) -> list[str]:
            copy = copies.get()
            try:
                tests = by_line.tests_of(mutant)
                expected_s = sum(by_line.seconds.get(test, 0) for test in tests)
                return noticed_by(mutant, copy, tests, STARTING_S + 3 * expected_s)
            finally:
                copies.put(copy)

        found: dict[Mutant, list[str]] = {}
        with ThreadPoolExecutor(len(clones)) as threads:
            for number, (mutant, tests) in enumerate(zip(mutants, threads.map(plant, mutants), strict=True), first):
                found[mutant] = tests
                typer.echo(f"{number:4} {mutant}\n     {' '.join(tests[:3]) or 'SURVIVED'}")
        named = sorted({test for tests in found.values() for test in tests})
        broken = {*failures(clones[0], named)} if named else set()
    survived = [mutant for mutant, tests in found.items() if not tests]
    undecided = [mutant for mutant, tests in found.items() if broken.intersection(tests)]
    noticed = len(found) - len(survived) - len(undecided)
    typer.echo(f"seed {seed}: {noticed} of {len(found)} mutants noticed, {len(survived)} survived, {len(undecided)} undecided")
    for mutant in [*survived, *undecided]:
        typer.echo(f"  {mutant}  {' '.join(found[mutant][:3])}")


if __name__ == "__main__":
    with until_interrupted():
        typer.run(main)
