"""Each recipe of examples/ is a folder to copy: a short program on the public package, with its tests and one page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted(page.parent for page in (ROOT / "examples").glob("*/README.md"))
MOST_LINES = 150
PUBLIC = ("rocketmq_broker.client", "rocketmq_broker.databases", "rocketmq_broker.testing", "rocketmq_broker.told_to_stop")
OURS = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()} | {
    "tests",
    "rocketmq_broker",
    "rocketmq_commitlog",
}

each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


def imports(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@each_recipe
def test_it_imports_itself_and_the_public_package_and_nothing_else_of_ours(recipe: Path) -> None:
    allowed = (*PUBLIC, f"examples.{recipe.name}")
    modules = {module for source in recipe.rglob("*.py") for module in imports(source) if module.split(".")[0] in OURS}
    assert {module for module in modules if not module.startswith(allowed)} == set()


@each_recipe
def test_its_program_is_short(recipe: Path) -> None:
    program = [path for path in recipe.rglob("*.py") if not path.name.startswith("test_")]
    lines = [line for path in program for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES


@each_recipe
def test_it_has_one_command_and_its_page_is_listed(recipe: Path) -> None:
    command = f"python -m examples {recipe.name}"
    assert command in (recipe / "README.md").read_text()
    assert f"({recipe.name}/README.md)" in (ROOT / "examples" / "README.md").read_text()
    assert f"examples/{recipe.name}/README.md" in (ROOT / "mkdocs.yml").read_text()


@each_recipe
def test_it_loses_a_commit_and_is_killed(recipe: Path) -> None:
    tests = "".join(path.read_text() for path in recipe.glob("test_*.py"))
    assert "lose_next_decision(" in tests
    assert re.search(r"SIGKILL|\.kill\(\)", tests)


@pytest.mark.parametrize("arguments", [[], ["no_such_recipe"], ["official_sample", "pay_later"]])
def test_the_command_names_the_recipes(arguments: list[str]) -> None:
    from examples.__main__ import main

    with pytest.raises(SystemExit, match=r"name one recipe, .*official_sample"):
        main(arguments)
