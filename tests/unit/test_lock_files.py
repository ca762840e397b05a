"""Images install the same versions that the tests use."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker import __version__

ROOT = Path(__file__).resolve().parents[2]


def pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", lock.read_text(), re.MULTILINE))


def shared(lock: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Returns this lock's versions of the packages that both locks name."""
    return {name: version for name, version in lock.items() if name in other}


def names(requirements: list[Any]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", requirement)[0] for requirement in requirements if isinstance(requirement, str)}


@pytest.mark.parametrize("package", ["commitlog", "faststream-rocketmq"])
def test_a_package_has_the_broker_s_version_and_asks_for_that_broker(package: str) -> None:
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]
    assert (project["version"], project["dependencies"][0]) == (__version__, f"rocketmq-broker=={__version__}")


@pytest.mark.parametrize("image", ["broker", "services", "demo"])
def test_an_image_has_the_versions_that_the_tests_have(image: str) -> None:
    installed, tested = pins(ROOT / "deploy" / "docker" / f"{image}.lock"), pins(ROOT / "requirements.lock")
    assert installed
    assert {name: tested.get(name) for name in installed} == installed


def test_every_dependency_is_in_the_locks_of_those_who_need_it() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    of_broker = tomllib.loads((ROOT / "broker" / "pyproject.toml").read_text())["project"]
    broker = names(of_broker["dependencies"])
    console, grpc = (names(of_broker["optional-dependencies"][extra]) for extra in ("console", "grpc"))
    services, demo = (names(pyproject["dependency-groups"][group]) for group in ("services", "demo"))
    locked = {image: pins(ROOT / "deploy" / "docker" / f"{image}.lock").keys() for image in ("broker", "services", "demo")}
    assert broker | console | grpc <= locked["broker"]
    assert not (services - console) & locked["broker"]
    assert broker | services <= locked["services"]
    assert not (demo - console) & locked["services"]
    assert broker | services | demo <= locked["demo"]


def test_what_compiles_the_broker_is_what_the_tests_compile_with() -> None:
    compiler, tested = pins(ROOT / "deploy" / "docker" / "compile.lock"), pins(ROOT / "requirements.lock")
    wanted = names(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["compile"])
    assert wanted <= compiler.keys()
    assert shared(tested, compiler) == shared(compiler, tested)
    assert {"mypy", "msgspec", "librt", "setuptools"} <= compiler.keys() & tested.keys()


def test_what_writes_the_sbom_is_locked_apart_from_what_the_tests_need() -> None:
    wanted = names(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["release"])
    assert wanted <= pins(ROOT / "deploy" / "docker" / "release.lock").keys()
    assert not wanted & pins(ROOT / "requirements.lock").keys()
