"""Runs a command of the wheel as the installed launcher does.

python command.py NAME ARGUMENT...
"""

import sys
import tomllib
from importlib import import_module
from pathlib import Path

PROJECT = Path(__file__).parents[4] / "broker" / "pyproject.toml"

if __name__ == "__main__":
    del sys.argv[0]
    scripts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
    module, _, function = scripts[sys.argv[0]].partition(":")
    sys.exit(getattr(import_module(module), function)())
