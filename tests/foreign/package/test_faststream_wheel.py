"""The FastStream broker's wheel contains its own modules and requires the exact versions of the broker and of FastStream."""

import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from deploy.scripts.build_wheels import build_wheel
from rocketmq_broker import __version__

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PROJECT = Path(__file__).resolve().parents[3]


def test_the_wheel_has_the_package_and_pins_what_it_is_built_on(tmp_path: Path) -> None:
    wheel = zipfile.ZipFile(build_wheel(Path(sys.executable), PROJECT / "packages" / "faststream-rocketmq", tmp_path, tmp_path))
    modules = {path.name for path in (PROJECT / "packages" / "faststream-rocketmq" / "faststream_rocketmq").glob("*.py")}
    names = {Path(name) for name in wheel.namelist()}
    assert {path.name for path in names if path.parent.name == "faststream_rocketmq"} == {*modules, "py.typed"}
    (metadata,) = (wheel.read(str(path)).decode() for path in names if path.name == "METADATA")
    tested = tomllib.loads((PROJECT / "pyproject.toml").read_text())["dependency-groups"]["faststream"]
    assert sorted(Parser().parsestr(metadata).get_all("Requires-Dist", [])) == [*tested, f"rocketmq-broker=={__version__}"]
