"""Checks that each recipe in tutorials/recipes/ can be copied: a short program on the public package, with tests and a page."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from order_messages import credit_refused, order_cancelled, order_created, stock_short
from tests.recipes import RECIPES, brought_by_pip_line

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 150
MAX_LINES_OF_COMPARISON = 30
PUBLIC = ("rocketmq_broker.client", "rocketmq_broker.databases", "rocketmq_broker.testing", "rocketmq_broker.stop_signals")
OURS = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} | {
    "tests",
    "rocketmq_broker",
    "rocketmq_commitlog",
}

BY_NAME_ONLY = {
    r"\+aiosqlite://": "aiosqlite",
    r"sqlalchemy\.ext\.asyncio": "greenlet",
    r"fastapi\.testclient": "httpx",
    r"redis(\+socket)?://": "redis",
    r'"gunicorn"': "gunicorn",
    r"^async def test_": "pytest-asyncio",
}
"""Signs in a recipe's text of a distribution that it does not import."""

each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


def imports(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@each_recipe
def test_it_imports_itself_and_the_public_package_and_nothing_else_of_ours(recipe: Path) -> None:
    allowed = (*PUBLIC, f"tutorials.recipes.{recipe.name}")
    modules = {module for source in recipe.rglob("*.py") for module in imports(source) if module.split(".")[0] in OURS}
    assert {module for module in modules if not module.startswith(allowed)} == set()


@each_recipe
def test_its_program_is_short(recipe: Path) -> None:
    program = [path for path in recipe.rglob("*.py") if not path.name.startswith("test_") and path.name != "compare.py"]
    assert sum(map(written_lines, program)) <= MAX_LINES
    assert sum(map(written_lines, recipe.glob("compare.py"))) <= MAX_LINES_OF_COMPARISON


def written_lines(source: Path) -> int:
    return sum(bool(line.strip()) for line in source.read_text().splitlines())


@each_recipe
def test_it_has_one_command_and_its_page_is_listed(recipe: Path) -> None:
    command = f"python -m tutorials.recipes {recipe.name}"
    assert command in (recipe / "README.md").read_text()
    assert f"({recipe.name}/README.md)" in (ROOT / "tutorials" / "recipes" / "README.md").read_text()
    assert f"tutorials/recipes/{recipe.name}/README.md" in (ROOT / "mkdocs.yml").read_text()


@each_recipe
def test_it_loses_a_commit_and_is_killed(recipe: Path) -> None:
    tests = "".join(path.read_text() for path in recipe.glob("test_*.py"))
    assert "lose_next_decision(" in tests
    assert re.search(r"SIGKILL|\.kill\(\)", tests)


@each_recipe
def test_its_pip_line_brings_what_it_imports(recipe: Path) -> None:
    brought = brought_by_pip_line(recipe, with_broker=False)
    sources = [(path, path.read_text()) for path in recipe.rglob("*.py")]
    roots = (
        {module.split(".")[0] for path, _ in sources for module in imports(path)} - sys.stdlib_module_names - OURS - {"examples"}
    )
    needed: set[str] = {canonicalize_name(packages_distributions()[root][0]) for root in roots}
    needed |= {name for sign, name in BY_NAME_ONLY.items() for _, text in sources if re.search(sign, text, re.MULTILINE)}
    assert needed - brought == set()


MEMBERS = {
    "TransactionProducer": "producer group",
    "Producer": "producer group",
    "PushConsumer": "consumer group",
    "PullConsumer": "consumer group",
    "RocketMQBroker": "producer group",
    "Message.of": "topic",
    "subscribe": "topic",
    "consumes": "topic",
    "create_topic": "topic",
    "subscriber": "topic",
    "publisher": "topic",
    "transactional_publisher": "topic",
    "queues": "topic",
}
"""What the first argument of a call is the name of."""
IN_ONE_PAGE = ("docs/client.md", "docs/faststream.md", "broker/README.md")
"""Pages whose programs look for the broker of the machine, as `make up` has one."""
SERVICES = {
    *(("topic", schema.TOPIC) for schema in (credit_refused, order_cancelled, order_created, stock_short)),
    *(
        (kind, f"{service}_service")
        for kind in ("producer group", "consumer group")
        for service in ("order", "credit", "inventory")
    ),
}


def names_in(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yields the topics and groups of a program, each with its kind."""
    constants = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            kind = next((kind for name, kind in MEMBERS.items() if called == name or called.endswith(f".{name}")), None)
            group = "consumer group" if called.endswith("subscriber") else "producer group"
            given = [(kind, node.args[0])] if kind and node.args else []
            given += [(group, keyword.value) for keyword in node.keywords if keyword.arg == "group"]
            if called == "rocketmq.SimpleConsumer":
                given += [("consumer group", node.args[1])]
            if called == "TransactionProducer":
                given += [
                    ("topic", key) for argument in node.args if isinstance(argument, ast.Dict) for key in argument.keys if key
                ]
            for meant, value in given:
                name = constants.get(value.id) if isinstance(value, ast.Name) else getattr(value, "value", None)
                if isinstance(name, str):
                    yield meant or "", name


def blocks_of(page: str) -> list[ast.Module]:
    """Returns the Python programs of a page. Blocks that are not complete programs are omitted."""
    trees = []
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL):
        try:
            trees.append(ast.parse(block))
        except SyntaxError:
            continue
    return trees


def names_of_programs() -> Iterator[tuple[str, set[tuple[str, str]]]]:
    yield "make up", SERVICES
    for recipe in RECIPES:
        program = [path for path in recipe.rglob("*.py") if not path.name.startswith("test_")]
        yield recipe.name, {name for path in program for name in names_in(ast.parse(path.read_text()))}
    for page in IN_ONE_PAGE:
        yield page, {name for tree in blocks_of(page) for name in names_in(tree)}


def test_topics_and_groups_belong_to_one_program_each() -> None:
    """Two programs that share a topic or group on one broker interfere with each other, even if they run at different times."""
    owners: dict[tuple[str, str], list[str]] = {}
    for program, names in names_of_programs():
        assert names or program == "official_sample", f"{program} has neither topics nor groups"
        for name in names:
            owners.setdefault(name, []).append(program)
    assert {name: programs for name, programs in owners.items() if len(programs) > 1} == {}


def test_each_transaction_listener_of_a_page_has_a_producer_group_of_its_own() -> None:
    """The broker checks back with any member of the group, and another listener would answer from another database."""
    groups = [
        ast.literal_eval(node.args[0])
        for tree in blocks_of("docs/client.md")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "TransactionProducer"
        and isinstance(node.args[0], ast.Constant)
    ]
    assert len(groups) > 3
    assert len(groups) == len(set(groups))


@pytest.mark.parametrize("arguments", [[], ["no_such_recipe"], ["official_sample", "pay_later"]])
def test_the_command_names_the_recipes(arguments: list[str]) -> None:
    from tutorials.recipes.__main__ import main

    with pytest.raises(SystemExit, match=r"with one of these names: .*official_sample"):
        main(arguments)
