"""What an image installs is what the tests ran with."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", lock.read_text(), re.MULTILINE))


@pytest.mark.parametrize("image", ["services", "demo"])
def test_an_image_has_the_versions_that_the_tests_have(image: str) -> None:
    installed, tested = pins(ROOT / "docker" / f"{image}.lock"), pins(ROOT / "requirements.lock")
    assert installed
    assert {name: tested.get(name) for name in installed} == installed


def test_every_dependency_is_in_the_locks_of_those_who_need_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    services, demo = (
        {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements}
        for requirements in (project["dependencies"], project["optional-dependencies"]["demo"])
    )
    assert services <= pins(ROOT / "docker" / "services.lock").keys()
    assert services | demo <= pins(ROOT / "docker" / "demo.lock").keys()
    assert not demo & pins(ROOT / "docker" / "services.lock").keys()
