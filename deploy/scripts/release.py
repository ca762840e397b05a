"""python -m deploy.scripts.release: what a release publishes, in dist: wheels, sdist, SBOM, notes, hashes; and the image.

It publishes nothing. It refuses a checkout with changes that are not committed, and a version that is not the newest in
CHANGELOG.md. Needs git. The image stays in the Docker engine; without an engine it is left out. `--pure` compiles nothing.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Annotated, Final

import typer
from packaging.metadata import Metadata

from deploy.scripts.build_image import released_image
from deploy.scripts.build_wheels import CHECKOUT, CannotBuildWheel, broker_environment, built, locked_environment, run
from deploy.scripts.release_notes import CannotRelease, address_of, notes_of, with_links
from rocketmq_broker import __version__
from rocketmq_broker.stop_signals import until_interrupted

RELEASE_LOCK: Final = CHECKOUT / "deploy" / "docker" / "release.lock"
SUMS: Final = "SHA256SUMS"


def main(
    pure: Annotated[bool, typer.Option("--pure", help="Only the wheels that any Python runs, and the sdist.")] = False,
    folder: Annotated[Path, typer.Option(help="Where all goes; it is emptied first.")] = CHECKOUT / "dist",
    repository: Annotated[
        str,
        typer.Option(help="The repository's address in a browser, for links of README and notes; that of the remote `origin`."),
    ] = "",
) -> None:
    """Builds and checks a release, and prints a line for each part."""
    try:
        for line in _released(folder.resolve(), repository.rstrip("/"), is_pure_only=pure):
            print(line, flush=True)
    except (CannotRelease, CannotBuildWheel) as error:
        print(error, file=sys.stderr)
        sys.exit(1)


def _released(folder: Path, repository: str, *, is_pure_only: bool) -> Iterator[str]:
    notes = notes_of((CHECKOUT / "CHANGELOG.md").read_text(), __version__)
    refuse_changes(run("git", "status", "--porcelain", cwd=CHECKOUT))
    commit = run("git", "rev-parse", "HEAD", cwd=CHECKOUT).strip()
    yield f"version {__version__}, commit {commit}"
    address = repository or _address_of_origin()
    yield from built(folder, is_pure_only=is_pure_only, address=address)
    distributions = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    problems = [problem for path in distributions for problem in problems_of(path, __version__)]
    if problems:
        raise CannotRelease("\n".join(problems))
    yield f"the metadata of {len(distributions)} distributions is as an index takes it"
    sbom = folder / f"rocketmq-broker-{__version__}.cdx.json"
    write_sbom(sbom, folder)
    yield f"{sbom.name}: the broker with all that it needs, and its licenses, as CycloneDX"
    (folder / "NOTES.md").write_text(with_links(notes, address, f"v{__version__}"))
    links = f"with links to {address}" if address else "with paths in place of links: `--repository` says where the files are"
    yield f"NOTES.md: {len(notes.splitlines())} lines from CHANGELOG.md, {links}"
    (folder / SUMS).write_text(sums_of(folder))
    yield f"{SUMS}: check with `sha256sum --check {SUMS}`"
    yield from released_image(__version__, commit, is_compiled=not is_pure_only)
    yield f"Nothing is published. docs/releasing.md says how to go on with {folder}."


def _address_of_origin() -> str:
    remotes = run("git", "remote", cwd=CHECKOUT).split()
    return address_of(run("git", "remote", "get-url", "origin", cwd=CHECKOUT)) if "origin" in remotes else ""


def refuse_changes(status: str) -> None:
    """Raises CannotRelease if this is what git says of a checkout with changes: nobody could build the same release again."""
    if status.strip():
        raise CannotRelease(f"the checkout has changes that are not committed:\n{status.rstrip()}")


def problems_of(distribution: Path, version: str) -> list[str]:
    """Returns what an index would refuse in the metadata of this wheel or sdist, each as a sentence; none if all is well."""
    written = _metadata(distribution)
    try:
        metadata = Metadata.from_email(written, validate=True)
    except ExceptionGroup as group:
        return [f"{distribution.name}: {error}" for error in group.exceptions]
    problems = []
    if str(metadata.version) != version:
        problems.append(f"{distribution.name}: its version is {metadata.version}, not {version}")
    if not HeaderParser().parsestr(written.decode())["License-Expression"]:
        problems.append(f"{distribution.name}: it names no license")
    return problems


def _metadata(distribution: Path) -> bytes:
    """Returns METADATA of a wheel, or PKG-INFO of an sdist."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")))
    with tarfile.open(distribution) as sdist:
        name = next(name for name in sdist.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name))
        found = sdist.extractfile(name)
        return found.read() if found else b""


def write_sbom(file: Path, wheels: Path) -> None:
    """Writes what an environment holds that has the broker of these wheels with its extras. Raises CannotBuildWheel.

    The tool has an environment of its own, so that it describes the broker's and not itself.
    """
    with tempfile.TemporaryDirectory(prefix="sbom-") as work:
        own = Path(sys.executable)
        tool = locked_environment(own, RELEASE_LOCK, Path(work))
        broker = broker_environment(own, wheels, Path(work))
        # The environment's own tools are nothing that the broker needs.
        run(broker, "-m", "pip", "--quiet", "uninstall", "--yes", "pip", "setuptools", cwd=Path(work))
        project = Path(work) / "pyproject.toml"
        project.write_text(with_version((CHECKOUT / "broker" / "pyproject.toml").read_text(), __version__))
        described = ("--pyproject", project, "--mc-type", "library")
        written = ("--output-format", "JSON", "--output-reproducible", "--output-file", file)
        run(tool, "-m", "cyclonedx_py", "environment", broker, *described, *written, cwd=Path(work))


def with_version(project: str, version: str) -> str:
    """Returns this pyproject.toml with a version of its own, where setuptools would read it from the package."""
    dynamic = 'dynamic = ["version"]'
    if dynamic not in project:
        raise CannotRelease(f"broker/pyproject.toml has no line `{dynamic}`: the SBOM would not know the version")
    return project.replace(dynamic, f'version = "{version}"')


def sums_of(folder: Path) -> str:
    """Returns a line for each file of the folder but the sums themselves, as `sha256sum` writes it."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


if __name__ == "__main__":
    with until_interrupted("Stopped: the release is not complete."):
        typer.run(main)
