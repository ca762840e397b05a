"""Builds a release in the folder dist, and the broker's image: `python -m deploy.scripts.release`.

The release contains wheels, an sdist, an SBOM, release notes and checksums. Nothing is published. Requires git. Refuses a
checkout with uncommitted changes, and a version that is not the newest in CHANGELOG.md. The image remains in the Docker engine.
If no engine is running, no image is built. `--pure` skips the compiled wheels.
"""

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
    pure: Annotated[bool, typer.Option("--pure", help="Build the pure wheels and the sdist only.")] = False,
    folder: Annotated[Path, typer.Option(help="Folder for the release; emptied first.")] = CHECKOUT / "dist",
    repository: Annotated[
        str,
        typer.Option(help="URL of the repository, for links in README and notes; default: the remote `origin`."),
    ] = "",
) -> None:
    """Builds and checks a release, and prints a line about each part."""
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
    yield f"the metadata of {len(distributions)} distributions is valid for a package index"
    sbom = folder / f"rocketmq-broker-{__version__}.cdx.json"
    write_sbom(sbom, folder)
    yield f"{sbom.name}: the broker's dependencies and their licenses, as CycloneDX"
    (folder / "NOTES.md").write_text(with_links(notes, address, f"v{__version__}"))
    links = f"with links to {address}" if address else "with paths instead of links: set the repository's URL with `--repository`"
    yield f"NOTES.md: {len(notes.splitlines())} lines from CHANGELOG.md, {links}"
    (folder / SUMS).write_text(sums_of(folder))
    yield f"{SUMS}: check with `sha256sum --check {SUMS}`"
    yield from released_image(__version__, commit, is_compiled=not is_pure_only)
    yield f"Nothing is published. Next steps for {folder}: docs/releasing.md."


def _address_of_origin() -> str:
    remotes = run("git", "remote", cwd=CHECKOUT).split()
    return address_of(run("git", "remote", "get-url", "origin", cwd=CHECKOUT)) if "origin" in remotes else ""


def refuse_changes(status: str) -> None:
    """Raises CannotRelease if `status`, the output of `git status`, lists changes. The release would not be reproducible."""
    if status.strip():
        raise CannotRelease(f"the checkout has uncommitted changes; commit or discard them:\n{status.rstrip()}")


def problems_of(distribution: Path, version: str) -> list[str]:
    """Returns the errors in the metadata of a wheel or sdist that would make a package index reject the distribution."""
    written = _metadata(distribution)
    try:
        metadata = Metadata.from_email(written, validate=True)
    except ExceptionGroup as group:
        return [f"{distribution.name}: {error}" for error in group.exceptions]
    problems = []
    if str(metadata.version) != version:
        problems.append(f"{distribution.name}: version {metadata.version}, expected {version}")
    if not HeaderParser().parsestr(written.decode())["License-Expression"]:
        problems.append(f"{distribution.name}: no license")
    return problems


def _metadata(distribution: Path) -> bytes:
    """Returns the file METADATA of a wheel, or the file PKG-INFO of an sdist."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")))
    with tarfile.open(distribution) as sdist:
        name = next(name for name in sdist.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name))
        found = sdist.extractfile(name)
        return found.read() if found else b""


def write_sbom(file: Path, wheels: Path) -> None:
    """Writes the SBOM of an environment that contains the broker from these wheels, with its dependencies.

    The SBOM tool runs in a separate environment, so that the SBOM does not list the tool. Raises CannotBuildWheel.
    """
    with tempfile.TemporaryDirectory(prefix="sbom-") as work:
        own = Path(sys.executable)
        tool = locked_environment(own, RELEASE_LOCK, Path(work))
        broker = broker_environment(own, wheels, Path(work))
        # The SBOM must not list pip and setuptools, because the broker does not need them.
        run(broker, "-m", "pip", "--quiet", "uninstall", "--yes", "pip", "setuptools", cwd=Path(work))
        project = Path(work) / "pyproject.toml"
        project.write_text(with_version((CHECKOUT / "broker" / "pyproject.toml").read_text(), __version__))
        described = ("--pyproject", project, "--mc-type", "library")
        written = ("--output-format", "JSON", "--output-reproducible", "--output-file", file)
        run(tool, "-m", "cyclonedx_py", "environment", broker, *described, *written, cwd=Path(work))


def with_version(project: str, version: str) -> str:
    """Returns the text of a pyproject.toml with this static version instead of the dynamic version. Raises CannotRelease."""
    dynamic = 'dynamic = ["version"]'
    if dynamic not in project:
        raise CannotRelease(f"broker/pyproject.toml has no line `{dynamic}`: the SBOM needs a static version")
    return project.replace(dynamic, f'version = "{version}"')


def sums_of(folder: Path) -> str:
    """Returns a line in the format of `sha256sum` for each file in the folder, except the file with the checksums."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


if __name__ == "__main__":
    with until_interrupted("Stopped: the release is not complete."):
        typer.run(main)
