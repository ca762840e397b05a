"""The workflows for GitHub Actions, ours and the one that users copy, name what exists."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
OURS = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
PAGE = (ROOT / "docs" / "github-actions.md").read_text()


def copied() -> dict[str, Any]:
    found = re.search(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return dict(yaml.safe_load(found[1]))


def test_ours_runs_what_ci_runs() -> None:
    commands = [step["run"] for step in OURS["jobs"]["tests"]["steps"] if "run" in step]
    assert commands[-1] == ".ci/run"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_the_service_container_is_checked_and_reached_as_the_image_says() -> None:
    service = copied()["jobs"]["tests"]["services"]["rocketmq"]
    assert "--health-cmd check-broker" in service["options"]
    assert (ROOT / "docker" / "check-broker").exists()
    dockerfile = (ROOT / "Dockerfile").read_text()
    exposed = re.findall(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)[0].split()
    assert {port.split(":")[-1] for port in service["ports"]} <= set(exposed)
    assert {port.split(":")[0] for port in service["ports"]} == {"127.0.0.1"}
    assert set(service["env"]) <= set(re.findall(r"\$\{(\w+):-", (ROOT / "docker" / "start-broker").read_text()))


def test_the_commands_of_the_page_name_a_stage_of_the_dockerfile() -> None:
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert set(re.findall(r"--target (\S+)", PAGE)) <= stages
