"""Tests that the first page of `make up` does not need the packages that `deploy/scripts/setup up` leaves out."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
WITHOUT_SPARK = """
import importlib, sys

class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0].replace("_", "-") in {left_out}:
            raise ModuleNotFoundError("not installed: " + name)

sys.meta_path.insert(0, Missing)
for program in {programs}:
    importlib.import_module(program)
"""


def left_out() -> set[str]:
    (names,) = re.findall(r"^spark_packages='(.*)'$", (ROOT / "deploy" / "scripts" / "setup").read_text(), re.MULTILINE)
    return set(names.split("|"))


def test_what_is_left_out_is_in_the_lock_of_the_demo() -> None:
    locked = re.findall(r"^([a-z0-9-]+)==", (ROOT / "deploy" / "docker" / "demo.lock").read_text(), re.MULTILINE)
    assert {"pyspark", "pyarrow"} <= left_out() <= set(locked)


PROGRAMS = """demo.up.__main__ order_service.entrypoints.process credit_service.entrypoints.process credit_service.worker.process
inventory_service.entrypoints.process rocketmq_broker.__main__"""


def test_each_program_of_make_up_starts_without_them() -> None:
    """The programs of `make up` can be imported without the packages that are left out.

    One process imports all programs.
    """
    source = WITHOUT_SPARK.format(left_out=left_out(), programs=PROGRAMS.split())
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
