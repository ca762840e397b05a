"""Builds the broker's image with the local Docker engine, and checks its size and version."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

from deploy.scripts.build_wheels import CHECKOUT, PRINT_VERSION, run
from deploy.scripts.release_notes import CannotRelease

MAX_BYTES: Final = 80_000_000
"""The maximum number of bytes that the image may add to its base image."""

_DOCKER: Final = "docker"


def has_engine() -> bool:
    """Returns True if the Docker CLI is installed and a Docker engine is running."""
    return bool(shutil.which(_DOCKER)) and subprocess.run([_DOCKER, "info"], capture_output=True, timeout=60).returncode == 0


def released_image(version: str, commit: str, *, is_compiled: bool) -> Iterator[str]:
    """Builds and checks the image `rocketmq-broker:VERSION`, and yields a line that reports the result.

    Skips the build if no Docker engine is running. Raises CannotRelease if the image is too large or contains another version of
    the broker, and CannotBuildWheel if Docker fails.
    """
    if not has_engine():
        yield "no image: no Docker engine answers"
        return
    tag = f"rocketmq-broker:{version}"
    build_image(tag, is_compiled=is_compiled, version=version, revision=commit, licenses="Apache-2.0")
    added, reported = added_bytes(tag), version_in(tag)
    refuse_image(tag, added, reported, version)
    yield f"image {tag}: {added / 1e6:.1f} MB over {base_of_images()}, at most {MAX_BYTES / 1e6:.0f}; {reported}"


def build_image(tag: str, *, is_compiled: bool = True, **labels: str) -> None:
    """Builds the target `broker` of the Dockerfile. Adds the tag and the OCI labels `labels` to the image."""
    options = [word for name, value in labels.items() for word in ("--label", f"org.opencontainers.image.{name}={value}")]
    build = ("--build-arg", f"COMPILED={int(is_compiled)}", "--network", "host", "--target", "broker")
    run(_DOCKER, "build", "--quiet", "--file", "deploy/Dockerfile", *build, *options, "--tag", tag, ".", cwd=CHECKOUT)


def base_of_images() -> str:
    """Returns the name of the Dockerfile's base image. Raises CannotRelease if the Dockerfile does not name it."""
    found = re.search(r"^FROM (\S+) AS base$", (CHECKOUT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    if found is None:
        raise CannotRelease("deploy/Dockerfile has no line `FROM … AS base`: cannot determine the base image")
    return found[1]


def added_bytes(tag: str) -> int:
    """Returns the number of bytes that the unpacked image adds to its base image.

    Pulls the base image if the Docker engine does not have it.
    """
    base = base_of_images()
    if not run(_DOCKER, "image", "ls", "--quiet", base, cwd=CHECKOUT).strip():
        run(_DOCKER, "pull", "--quiet", base, cwd=CHECKOUT)
    sizes = [int(run(_DOCKER, "image", "inspect", "--format", "{{.Size}}", name, cwd=CHECKOUT)) for name in (tag, base)]
    return sizes[0] - sizes[1]


def version_in(tag: str) -> str:
    """Returns the version text that the broker in the image reports."""
    return run(_DOCKER, "run", "--rm", "--network", "none", tag, "python3", "-c", PRINT_VERSION, cwd=CHECKOUT).strip()


def refuse_image(tag: str, added: int, reported: str, version: str) -> None:
    """Raises CannotRelease if the image adds more than MAX_BYTES to its base image, or if its broker has another version."""
    if not 0 < added <= MAX_BYTES:
        raise CannotRelease(f"image {tag} is too large: {added / 1e6:.1f} MB over its base, at most {MAX_BYTES / 1e6:.0f} MB")
    if version not in re.split(r"[ ,]", reported):
        raise CannotRelease(f"image {tag} contains broker `{reported}`, not version {version}")
