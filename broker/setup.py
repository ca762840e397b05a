"""The compiled modules of the wheel, if any; everything else about it is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent / "build_backend"))

from compiled_modules import compiled_paths, is_compiled_build


def extensions() -> list[object]:
    """The compiled modules, each an extension; none unless the build is a compiled one."""
    if not is_compiled_build():
        return []
    from mypyc.build import mypycify

    # One C file for each module: compilers take too long, and too much memory, for one of all together.
    return list(mypycify(compiled_paths(), group_name="rocketmq_broker", multi_file=True, opt_level="2", debug_level="0"))


setup(ext_modules=extensions())
