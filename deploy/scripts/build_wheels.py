"""Builds the broker's wheels: `python -m deploy.scripts.build_wheels`.

Builds a pure wheel, and a compiled wheel for each installed CPython version. Installs each wheel into an empty environment and
prints the version that the broker reports. `--pure` skips the compiled wheels.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from deploy.scripts.release_notes import with_links
from rocketmq_broker import __version__
from rocketmq_broker.stop_signals import until_interrupted

CHECKOUT: Final = Path(__file__).resolve().parents[2]
COMPILE_LOCK: Final = CHECKOUT / "deploy" / "docker" / "compile.lock"
BROKER_LOCK: Final = CHECKOUT / "deploy" / "docker" / "broker.lock"
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""The Python versions for which compiled wheels are built."""

DISTRIBUTIONS: Final = ("broker", "packages/commitlog", "packages/faststream-rocketmq")
"""The folders of the distributions, relative to the root of the checkout."""

_BUILD_SDIST: Final = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
_HAS_HEADERS: Final = "import sysconfig, pathlib; print((pathlib.Path(sysconfig.get_path('include')) / 'Python.h').exists())"
_IGNORED: Final = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".mypy_cache")
_PIP: Final = ("-m", "pip", "--quiet", "--disable-pip-version-check")
PRINT_VERSION: Final = "from rocketmq_broker.build_info import version_text; print(version_text())"


class CannotBuildWheel(Exception):
    """Raised if a wheel cannot be built. The error message is the reason, or the output of the command that failed."""


def main(
    pure: Annotated[bool, typer.Option("--pure", help="Build the pure wheels and the sdist only.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder for the wheels; emptied first.")] = CHECKOUT / "dist",
) -> None:
    """Builds the wheels and prints a line about each."""
    try:
        for line in built(folder.resolve(), is_pure_only=pure):
            print(line, flush=True)
    except CannotBuildWheel as error:
        print(error, file=sys.stderr)
        sys.exit(1)


def built(folder: Path, *, is_pure_only: bool, address: str = "") -> Iterator[str]:
    """Empties the folder, builds the wheels and the sdist into it, and yields a line about each. Raises CannotBuildWheel.

    The links in the README of the broker's distribution lead to this version's tag in the repository at `address`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="wheels-") as work:
        yield from _built(folder, Path(work), sources_with_links(Path(work), address), is_pure_only=is_pure_only)


def sources_with_links(work: Path, address: str) -> Path:
    """Copies the folders of the distributions into a new folder in `work`, and returns the new folder.

    The links in the copied README lead to the repository at `address`.
    """
    sources = Path(tempfile.mkdtemp(dir=work))
    for distribution in DISTRIBUTIONS:
        shutil.copytree(CHECKOUT / distribution, sources / distribution, ignore=_IGNORED)
    readme = sources / "broker" / "README.md"
    readme.write_text(with_links(readme.read_text(), address, f"v{__version__}", "broker"))
    return sources


def _built(folder: Path, work: Path, sources: Path, *, is_pure_only: bool) -> Iterator[str]:
    own = Path(sys.executable)
    wheels = {name: build_wheel(own, sources / name, folder, work) for name in DISTRIBUTIONS}
    source = _copied(sources / "broker", work)
    run(own, "-c", _BUILD_SDIST, folder, cwd=source)
    yield f"any Python: {_name_and_size(wheels['broker'])}; {installed_build(own, folder, work)}"
    yield from (f"any Python: {_name_and_size(wheels[name])}" for name in DISTRIBUTIONS[1:])
    yield from map(_name_and_size, folder.glob("*.tar.gz"))
    if is_pure_only:
        return
    if shutil.which("cc") is None:
        raise CannotBuildWheel(
            "no C compiler: apt-get install gcc libc6-dev, or run `make wheels COMPILED=0` for the pure wheels only"
        )
    found = pythons()
    for version in VERSIONS:
        python = found.get(version)
        if python is None:
            yield f"CPython {version}: not installed, no wheel (searched: PATH, ~/.pyenv)"
        elif run(python, "-c", _HAS_HEADERS, cwd=work).strip() != "True":
            yield f"CPython {version}: {python} has no Python.h, no wheel (apt-get install python3-dev)"
        else:
            wheel = compiled_wheel(python, sources / "broker", folder, work)
            yield f"CPython {version}: {_name_and_size(wheel)}; {installed_build(python, folder, work)}"


def pythons() -> dict[str, Path]:
    """Returns the paths of the installed Python interpreters, keyed by version.

    Searches PATH and pyenv. For each version, uses pyenv's latest release; for the version that runs this script, uses the
    current interpreter.
    """
    own = "{}.{}".format(*sys.version_info[:2])
    found = {version: shutil.which(f"python{version}") for version in VERSIONS}
    pythons = {version: Path(program) for version, program in found.items() if program and "shims" not in program}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for program in sorted(pyenv.glob("versions/3.*/bin/python"), key=lambda path: _numbers(path.parts[-3])):
        version = "{}.{}".format(*_numbers(program.parts[-3])[:2])
        if version in VERSIONS:
            pythons[version] = program
    return pythons | {own: Path(sys.executable)}


def build_wheel(python: Path, distribution: Path, folder: Path, work: Path, **environment: str) -> Path:
    """Builds a distribution's wheel into `folder` and returns its path. Raises CannotBuildWheel."""
    source = _copied(distribution, work)
    with tempfile.TemporaryDirectory(dir=work) as made:
        pip = [*_PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", made]
        run(python, *pip, source, cwd=work, **environment)
        (wheel,) = Path(made).glob("*.whl")
        return Path(shutil.move(wheel, folder / wheel.name))


def compiled_wheel(python: Path, broker: Path, folder: Path, work: Path) -> Path:
    """Compiles the broker's source in the folder `broker` for `python`, and returns the path of the wheel.

    The wheel's platform tag contains the oldest version of glibc with which the wheel works.
    """
    own = locked_environment(python, COMPILE_LOCK, work)
    compiler = own.parents[1]
    plain = build_wheel(own, broker, compiler, work, ROCKETMQ_BROKER_COMPILED="1")
    run(own, "-m", "auditwheel", "repair", "--wheel-dir", compiler / "fits", plain, cwd=work,
        PATH=f"{compiler / 'bin'}:{os.environ['PATH']}")  # fmt: skip
    (wheel,) = (compiler / "fits").glob("*.whl")
    return Path(shutil.move(wheel, folder / wheel.name))


def installed_build(python: Path, wheels: Path, work: Path) -> str:
    """Installs the broker from the wheels in this folder into an empty environment, and returns its version text."""
    return run(broker_environment(python, wheels, work), "-c", PRINT_VERSION, cwd=work).strip()


def broker_environment(python: Path, wheels: Path, work: Path) -> Path:
    """Installs the broker from these wheels into an empty environment, with its dependencies.

    Returns the path of the environment's Python.
    """
    own = locked_environment(python, BROKER_LOCK, work)
    ours = ("--no-deps", "--no-index", "--only-binary", ":all:", "rocketmq-broker")
    run(own, *_PIP, "install", "--find-links", wheels, *ours, cwd=work)
    return own


def locked_environment(python: Path, lock: Path, work: Path) -> Path:
    """Creates a virtual environment in `work` with the packages of the lock file.

    Returns the path of the environment's Python.
    """
    environment = Path(tempfile.mkdtemp(dir=work)) / "environment"
    run(python, "-m", "venv", environment, cwd=work)
    own = environment / "bin" / "python"
    run(own, *_PIP, "install", "--use-pep517", "--require-hashes", "-r", lock, cwd=work)
    return own


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Runs a command and returns its output. Raises CannotBuildWheel if the command fails.

    Removes the environment variables that configure Python, and adds those in `environment`.
    """
    ours = ("PYTHON", "ROCKETMQ_BROKER_COMPILED")
    kept: Mapping[str, str] = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        raise CannotBuildWheel(
            f"{' '.join(map(str, command))} ended with code {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
    return done.stdout


def _copied(distribution: Path, work: Path) -> Path:
    """Copies a distribution's source, because setuptools leaves files in the build folder. Returns the copy's path."""
    copy = Path(tempfile.mkdtemp(dir=work)) / distribution.name
    shutil.copytree(distribution, copy, ignore=_IGNORED)
    return copy


def _name_and_size(path: Path) -> str:
    return f"{path.name}, {path.stat().st_size / 1e6:.1f} MB"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


if __name__ == "__main__":
    with until_interrupted("Stopped: not all wheels are built."):
        typer.run(main)
