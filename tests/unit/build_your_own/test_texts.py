"""Tests that the texts of the stages show the bytes that the code writes, and list all claims that the tester checks."""

import ast
import re

import pytest

from tutorials.build_your_own.curriculum import FOLDER, STAGES, Stage
from tutorials.build_your_own.examples import BLOCK, examples, with_examples

ROOT = FOLDER.parents[1]
PARTS = ("What to build", "The bytes", "What the tester does", "Hints", "Trade-offs", "Read more")


def claims_of(stage: Stage) -> list[str]:
    """Returns the claims that the stage's module contains as literals."""
    tree = ast.parse((FOLDER / "stages" / f"{stage.name}.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    spoken = [call.args[0] for call in calls if call.func.attr in ("claim", "start") and call.args]  # type: ignore[attr-defined]
    return [text.value if isinstance(text, ast.Constant) else without_values(text) for text in spoken]


def without_values(text: ast.expr) -> str:
    assert isinstance(text, ast.JoinedStr)
    return "".join(part.value if isinstance(part, ast.Constant) else "#" for part in text.values)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_text_shows_the_bytes_that_the_code_makes(stage: Stage) -> None:
    text = stage.text.read_text()
    assert text == with_examples(text)


def test_each_example_is_shown_in_a_text() -> None:
    shown = {name for stage in STAGES for _, name, _, _ in BLOCK.findall(stage.text.read_text())}
    assert shown == set(examples())


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_text_says_each_sentence_that_the_tester_proves(stage: Stage) -> None:
    text = " ".join(stage.text.read_text().replace("**", "").split())
    claims = claims_of(stage)
    assert claims
    missing = [claim for claim in claims if not re.search(re.escape(claim).replace(r"\#", ".+?"), text)]
    assert missing == []


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_text_has_all_its_parts_in_their_order(stage: Stage) -> None:
    text = stage.text.read_text()
    assert text.startswith(f"# {stage.number}. {stage.title}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(PARTS)
    assert re.search(r"^\*\*Level\*\*: .+ · \*\*Time\*\*: \d+ minutes$", text, re.MULTILINE)


@pytest.mark.parametrize("stage", STAGES[:-1], ids=lambda stage: stage.name)
def test_a_text_leads_to_the_next_one(stage: Stage) -> None:
    following = STAGES[stage.number]
    assert f"Next: [{following.number}. {following.title}]({following.name}.md)" in stage.text.read_text()


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_claim_names_a_file_of_ours_that_exists(stage: Stage) -> None:
    named = re.findall(r'"(broker/[\w/]+\.py)"', (FOLDER / "stages" / f"{stage.name}.py").read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_lists_all_stages() -> None:
    listed = re.findall(r"^\| (\d+) \| \[(.*?)\]\(stages/(\w+)\.md\)", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert listed == [(str(stage.number), stage.title, stage.name) for stage in STAGES]


def test_the_readme_says_the_minutes_of_all_stages() -> None:
    minutes = [int(found) for stage in STAGES for found in re.findall(r"\*\*Time\*\*: (\d+) minutes", stage.text.read_text())]
    assert len(minutes) == len(STAGES)
    assert f"**Time**: {sum(minutes)} minutes" in (FOLDER / "README.md").read_text()
