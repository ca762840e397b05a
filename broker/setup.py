"""Adds the compiled modules to the wheel, if any. All other settings of the wheel are in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent / "build_backend"))

from compiled_modules import compiled_paths, is_compiled_build


def extensions() -> list[object]:
    """Returns an extension for each compiled module, or an empty list if the build compiles no modules."""
    if not is_compiled_build():
        return []
    from mypyc.build import mypycify

    # One C file for each module: compilers take too long, and too much memory, for one of all together.
    return list(mypycify(compiled_paths(), group_name="rocketmq_broker", multi_file=True, opt_level="2", debug_level="0"))


setup(ext_modules=extensions())
