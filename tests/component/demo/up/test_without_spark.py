"""Tests that the first page of `make up` does not need the packages that `deploy/scripts/setup up` leaves out."""

import re
import subprocess
import sys
from pathlib import Path

from deploy.scripts.pinned import locked_versions
from tests.without_modules import without_modules

ROOT = Path(__file__).resolve().parents[4]


def left_out() -> set[str]:
    (names,) = re.findall(r"^spark_packages='(.*)'$", (ROOT / "deploy" / "scripts" / "setup").read_text(), re.MULTILINE)
    return set(names.split("|"))


def test_what_is_left_out_is_in_the_lock_of_the_demo() -> None:
    assert {"pyspark", "pyarrow"} <= left_out() <= locked_versions(ROOT / "deploy" / "docker" / "demo.lock").keys()


PROGRAMS = """demo.up.__main__ order_service.entrypoints.process credit_service.entrypoints.process credit_service.worker.process
inventory_service.entrypoints.process rocketmq_broker.__main__"""


def test_each_program_of_make_up_starts_without_them() -> None:
    """The programs of `make up` can be imported without the packages that are left out.

    One process imports all programs.
    """
    modules = {name.replace("-", "_") for name in left_out()}
    source = (
        f"{without_modules(modules)}\nimport importlib\nfor program in {PROGRAMS.split()}:\n    importlib.import_module(program)"
    )
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
