"""Builds the files that the page docs/play loads: `python -m deploy.scripts.site_play FOLDER`.

`make site` runs this script. The page runs the broker and the services in Pyodide, a CPython for browsers. Pyodide
is downloaded from npm, and compiled packages are downloaded as wheels from PyPI, each with a fixed checksum. The
downloads are kept in build/play. All other files come from this checkout and its .venv. To find them, the script
runs the page's program in Pyodide on node, uses every button and plays every round, and records the files that are
read.
"""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

from deploy.scripts.pinned import CannotFetch, Pinned, fetched, locked_versions, npm_package
from rocketmq_broker.stop_signals import until_interrupted

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / "build" / "play"
LOCK: Final = ROOT / "requirements.lock"
PYTHON: Final = "3.14"
ABI: Final = "pyemscripten_2026_0_wasm32"
"""The platform of wheels that this Pyodide's Python can load."""


class CannotBuildPlay(Exception):
    """Raised if the page's files cannot be built. The error message contains the reason."""


PYODIDE: Final = Pinned("pyodide", "314.0.7", "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0")
WHEELS: Final = (
    Pinned("msgspec", "0.22.0", "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022"),
    Pinned("librt", "0.16.0", "1b384b90ab79a7bc30b566895809a636e0666f21f3cf12b54823d025b7e83839"),
    Pinned("pydantic-core", "2.50.4", "e6da138a1ecc1341c8b788a5ee822670b03788e1f5decf7af9d461de6e508b8e"),
)
"""The compiled packages. Each has the version of requirements.lock, so that the page and the tests run the same code."""
BLOCKED: Final = ("isal", "greenlet", "pygments")
"""Packages that the page does without: the code that imports them has something else to use."""
_PYODIDE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
"""The files of the npm package that a Pyodide needs."""
_PLAIN: Final = "pyodide.mjs"
"""The file that the page loads as it is. All others it loads compressed, because not every host compresses them."""
SOURCES: Final = (ROOT / "broker", ROOT / "packages" / "commitlog", ROOT)
"""The folders of this checkout that contain packages, the innermost first."""
_CONSOLE: Final = ROOT / "broker" / "rocketmq_broker" / "admin" / "console" / "static" / "console.css"
_IN_1980: Final = (1980, 1, 1, 0, 0, 0)
_TRACE: Final = """
import json, sys

opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
sys.modules.update(dict.fromkeys(BLOCKED))
from demo.play import entry

def call(**arguments):
    return json.loads(entry.call(json.dumps(arguments))).get("result")

plays = [[word for step in one["steps"] for word in step["words"]] for one in call(do="rounds", language="en")]
call(do="start", seed=7)
plays.append([button["name"] for button in call(do="state", language="en")["buttons"]])
for words in plays:
    call(do="start", seed=7)
    for word in words:
        call(do="play", words=[word])
        call(do="record", offset=0)
    for language in ("en", "zh"):
        call(do="rounds", language=language)
        call(do="replay", language=language)
        for order in call(do="state", language=language)["orders"]:
            call(do="diagram", word=order["order_id"], language=language)
    call(do="test")
print(json.dumps(opened + [module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)]))
"""
"""Presses every button and plays every round, and prints the files of all modules, and all other files that were opened."""


_COMPILE: Final = """
import pathlib, py_compile

for folder, name in zip(folders, ("/play-modules", "/lib/python314.zip")):
    for file in pathlib.Path(folder).rglob("*.py"):
        if not {"migrations", "anyio"} & set(file.parts):
            shown, mode = f"{name}/{file.relative_to(folder)}", py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(file, f"{file}c", shown, doraise=True, invalidation_mode=mode)
"""
"""Compiles each module, because a page takes seconds for it. Alembic reads the sources of migrations, and AnyIO its own."""


def main(arguments: list[str]) -> None:
    """Builds the files, and prints a line about them. Exits with an error text if they cannot be built.

    `arguments` contains the folder, or nothing for build/site/play.
    """
    try:
        [folder] = arguments or [str(ROOT / "build" / "site" / "play")]
        print(build(Path(folder)))
    except (CannotFetch, CannotBuildPlay) as error:
        sys.exit(f"docs/play cannot be built: {error}")


def build(folder: Path) -> str:
    """Writes the page's files to the sub-folder `runtime`, and their licenses to the sub-folder `licenses`.

    Returns a line with the number and the size of the files. Raises CannotFetch or CannotBuildPlay.
    """
    if moved := moved_wheels(locked_versions(LOCK)):
        raise CannotBuildPlay("; ".join(moved))
    tarball, wheels = pyodide_tarball(), {pinned.name: wheel_of(pinned) for pinned in WHEELS}
    runtime, licenses = folder / "runtime", folder / "licenses"
    for emptied in (runtime, licenses):
        shutil.rmtree(emptied, ignore_errors=True)
        emptied.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="play-") as work:
        pyodide, unpacked, staged, library = (Path(work, name) for name in ("pyodide", "wheels", "staged", "library"))
        unpack_pyodide(tarball, pyodide)
        for wheel in wheels.values():
            zipfile.ZipFile(wheel).extractall(unpacked)
        used = traced_files(pyodide, unpacked)
        owners = distributions_of(used)
        stage_modules(staged, used, unpacked, owners)
        zipfile.ZipFile(pyodide / "python_stdlib.zip").extractall(library)
        run_in_node(_COMPILE, pyodide, [staged, library])
        pack(staged, pyodide / "modules.zip")
        pack(library, pyodide / "python_stdlib.zip")
        for file in sorted(pyodide.iterdir()):
            write_runtime(file, runtime)
    shutil.copyfile(_CONSOLE, runtime / "console.css")
    write_licenses(licenses, owners, wheels)
    sizes = {file.name: file.stat().st_size for file in sorted(runtime.iterdir()) if file.suffix != ".css"}
    (runtime / "manifest.json").write_text(json.dumps({"bytes": sum(sizes.values()), "files": sizes}, indent=1))
    return f"{folder}: {len(used)} files in use, {sum(sizes.values()) / 1e6:.1f} MB to load"


# What comes from registries


def pyodide_tarball() -> Path:
    """Returns the path of Pyodide's npm package. Downloads the package if it is not cached. Raises CannotFetch."""
    return npm_package(PYODIDE, CACHE)


def wheel_of(pinned: Pinned) -> Path:
    """Returns the path of a compiled package's wheel for the page's Python. Downloads the wheel if it is not cached.

    Raises CannotFetch.
    """
    tag = f"cp{PYTHON.replace('.', '')}"
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
        "--platform", ABI, "--python-version", PYTHON, "--implementation", "cp", "--abi", tag, f"{pinned.name}=={pinned.version}",
    ]  # fmt: skip
    return fetched(pinned, CACHE / f"{pinned.name.replace('-', '_')}-{pinned.version}-{tag}-{tag}-{ABI}.whl", command)


def moved_wheels(locked: Mapping[str, str]) -> list[str]:
    """Returns a sentence about each compiled package whose locked version differs from that of the page's wheel."""
    return [
        f"{pinned.name} is {locked.get(pinned.name)} in requirements.lock: docs/play needs its wheel for {ABI} "
        f"in deploy/scripts/site_play.py, which has {pinned.version}"
        for pinned in WHEELS
        if locked.get(pinned.name) != pinned.version
    ]


def unpack_pyodide(tarball: Path, folder: Path) -> None:
    """Extracts from the npm package the files that Pyodide needs. Writes them to `folder`, uncompressed.

    Raises CannotBuildPlay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tarball) as package:
        for name in _PYODIDE:
            member = package.extractfile(f"package/{name}")
            if member is None:
                raise CannotBuildPlay(f"{tarball.name} has no file {name}")
            (folder / name).write_bytes(member.read())


def write_runtime(file: Path, folder: Path) -> None:
    """Writes a file to `folder` as the page loads it. Compressed files have a name that keeps hosts from unpacking them."""
    if file.name == _PLAIN:
        shutil.copyfile(file, folder / file.name)
    else:
        (folder / f"{file.name}.bin").write_bytes(gzip.compress(file.read_bytes(), mtime=0))


# What comes from the checkout and .venv


def run_in_node(program: str, pyodide: Path, folders: Iterable[Path]) -> str:
    """Runs a Python program with the page's Python in node, and returns its output. Raises CannotBuildPlay.

    `pyodide` is the folder of the unpacked npm package. `folders` become sys.path.
    """
    if shutil.which("node") is None:
        raise CannotBuildPlay("node is missing: apt-get install nodejs")
    command = ["node", str(Path(__file__).with_name("play_in_node.mjs")), str(pyodide), *map(str, folders)]
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuildPlay(f"a program failed in the page's Python: {done.stderr.strip()}")
    return done.stdout


def traced_files(pyodide: Path, wheels: Path) -> dict[str, Path]:
    """Returns the files of the checkout and .venv that the page's Python reads while every button is used.

    The files are keyed by their paths in the archive. `wheels` is the folder of the unpacked wheels, whose files are
    not included. Raises CannotBuildPlay.
    """
    folders = [wheels, *SOURCES, *(Path(folder) for folder in sys.path if folder.endswith("site-packages"))]
    printed = run_in_node(f"BLOCKED = {BLOCKED!r}{_TRACE}", pyodide, folders)
    return used_files(json.loads(printed.splitlines()[-1]), folders)


def used_files(read: Iterable[str], folders: Sequence[Path]) -> dict[str, Path]:
    """Returns the files in `folders` to which the paths in `read` refer, keyed by path in the archive.

    The paths begin with /N, where N is the index of a folder. Files of the first folder are not included. Metadata of
    distributions is not included either, because a program that looks for entry points reads the metadata of every
    distribution.
    """
    found = {}
    for path in read:
        position = re.fullmatch(r"/(\d+)/(.+)", path)
        if position is None or int(position[1]) == 0 or ".dist-info/" in path:
            continue
        file = folders[int(position[1])] / position[2]
        if file.is_file():
            found[position[2]] = file
    return found


def stage_modules(folder: Path, used: Mapping[str, Path], wheels: Path, owners: Iterable[Distribution]) -> None:
    """Copies the used modules and the content of the wheels to `folder`.

    Also copies the metadata of the owning distributions, in which packages look up their versions.
    """
    for file in wheels.rglob("*"):
        if file.suffix in (".py", ".so") or file.name == "METADATA":
            _keep(folder / file.relative_to(wheels), file.read_bytes())
    for name, file in used.items():
        _keep(folder / name, file.read_bytes())
    for distribution in owners:
        metadata = folder / f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        _keep(metadata / "METADATA", (distribution.read_text("METADATA") or "").partition("\n\n")[0].encode())
        if entry_points := distribution.read_text("entry_points.txt"):
            _keep(metadata / "entry_points.txt", entry_points.encode())


def pack(staged: Path, archive: Path) -> None:
    """Writes the staged files to a reproducible archive. Leaves out source files that have a bytecode file.

    The archive stores the files, because it is compressed as a whole: what many modules contain is then compressed once.
    """
    names = {file.relative_to(staged).as_posix() for file in staged.rglob("*") if file.is_file()}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as written:
        for name in sorted(names - {compiled.removesuffix("c") for compiled in names if compiled.endswith(".pyc")}):
            written.writestr(zipfile.ZipInfo(name, _IN_1980), (staged / name).read_bytes())


def distributions_of(used: Mapping[str, Path]) -> list[Distribution]:
    """Returns the distributions in .venv to which the files belong."""
    wanted = {file.resolve() for file in used.values()}
    found = []
    for distribution in distributions():
        files = distribution.files or []
        if any(Path(str(file.locate())).resolve() in wanted for file in files if file.suffix == ".py"):
            found.append(distribution)
    return sorted(found, key=lambda distribution: distribution.name.lower())


# Licenses


def write_licenses(folder: Path, owners: Iterable[Distribution], wheels: Mapping[str, Path]) -> None:
    """Writes the licenses of everything that the page loads, and NOTICE.txt, which lists them."""
    lines = [
        "What the page loads beside this project (Apache-2.0), and where its source is:", "",
        f"pyodide {PYODIDE.version}: MPL-2.0 (https://www.mozilla.org/MPL/2.0/), https://github.com/pyodide/pyodide",
        f"CPython {PYTHON}, within Pyodide: PSF-2.0 (https://docs.python.org/{PYTHON}/license.html), https://github.com/python/cpython",
    ]  # fmt: skip
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    for name, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as packed:
            for member in packed.namelist():
                if "/licenses/" in member:
                    _keep(folder / name / Path(member).name, packed.read(member))
    named = {distribution.name: distribution for distribution in owners}
    named |= {distribution.name: distribution for distribution in distributions() if distribution.name in wheels}
    for name, distribution in sorted(named.items(), key=lambda item: item[0].lower()):
        lines.append(f"{name} {distribution.version}: {_license_name(distribution)}, https://pypi.org/project/{name}/")
        for file in distribution.files or []:
            if (
                name not in wheels
                and re.match(r"(?i)(licen[cs]e|copying|notice|authors)", file.name)
                and "dist-info" in str(file)
            ):
                _keep(folder / name / file.name, Path(str(file.locate())).read_bytes())
    (folder / "NOTICE.txt").write_text("\n".join([*lines, ""]))


def _keep(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _license_name(distribution: Distribution) -> str:
    metadata = distribution.metadata
    classifiers = [line.rpartition(":: ")[2] for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
    fields = [line for name in ("License-Expression", "License") for line in metadata.get_all(name, [])]
    stated = fields[0].partition("\n")[0] if fields else ""
    return stated or ", ".join(classifiers) or "see its files"


if __name__ == "__main__":
    with until_interrupted("Stopped: docs/play is not built."):
        main(sys.argv[1:])
