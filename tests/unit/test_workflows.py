"""The GitHub Actions workflows, ours and the one that users copy, refer only to existing files and commands."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OURS = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
PAGE = (ROOT / "docs" / "github-actions.md").read_text()


def copied() -> dict[str, Any]:
    found = re.search(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return dict(yaml.safe_load(found[1]))


def test_ours_runs_what_ci_runs() -> None:
    job = OURS["jobs"]["tests"]
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/run ${{ matrix.target }}"
    assert f"set -- {' '.join(job['strategy']['matrix']['target'])}\n" in (ROOT / ".ci" / "run").read_text()
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_target_that_a_workflow_makes_exists(path: Path) -> None:
    steps = [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]
    made = re.findall(r"\bmake ([\w-]+)", "\n".join(step.get("run", "") for step in steps))
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(made) <= set(targets)


def test_what_is_checked_before_a_commit_is_what_make_check_checks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text()
    assert [hook["id"] for hook in hooks if hook["entry"].removesuffix(" --force-exclude") not in makefile] == []


def test_the_service_container_is_checked_and_reached_as_the_image_says() -> None:
    service = copied()["jobs"]["tests"]["services"]["rocketmq"]
    assert "--health-cmd check-broker" in service["options"]
    assert (ROOT / "deploy" / "docker" / "check-broker").exists()
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    exposed = re.findall(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)[0].split()
    assert {port.split(":")[-1] for port in service["ports"]} <= set(exposed)
    assert {port.split(":")[0] for port in service["ports"]} == {"127.0.0.1"}
    assert set(service["env"]) <= set(re.findall(r"\$\{(\w+):-", (ROOT / "deploy" / "docker" / "start-broker").read_text()))


def test_the_commands_of_the_page_name_a_stage_of_the_dockerfile() -> None:
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE))
    assert set(re.findall(r"--target (\S+)", PAGE)) <= stages
