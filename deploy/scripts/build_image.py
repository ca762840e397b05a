"""The image of the broker alone: built by the Docker engine of this machine, measured, and asked which version it runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

from deploy.scripts.build_wheels import CHECKOUT, run
from deploy.scripts.release_notes import CannotRelease

MAX_BYTES: Final = 80_000_000
"""What the image may add to its base."""

_DOCKER: Final = "docker"
_VERSION: Final = "from rocketmq_broker.build_info import version_text; print(version_text())"


def has_engine() -> bool:
    """Returns whether there is a Docker program, and an engine that answers it."""
    return bool(shutil.which(_DOCKER)) and subprocess.run([_DOCKER, "info"], capture_output=True, timeout=60).returncode == 0


def released_image(version: str, commit: str, *, is_compiled: bool) -> Iterator[str]:
    """Builds and checks the image `rocketmq-broker:VERSION`, and yields a line about it, or that it is left out.

    Raises CannotRelease if the image adds too much to its base or runs another version, and CannotBuildWheel if Docker fails.
    """
    if not has_engine():
        yield "no image: no Docker engine answers"
        return
    tag = f"rocketmq-broker:{version}"
    build_image(tag, is_compiled=is_compiled, version=version, revision=commit, licenses="Apache-2.0")
    added, told = added_bytes(tag), version_in(tag)
    refuse_image(tag, added, told, version)
    yield f"image {tag}: {added / 1e6:.1f} MB over {base_of_images()}, at most {MAX_BYTES / 1e6:.0f}; {told}"


def build_image(tag: str, *, is_compiled: bool = True, **labels: str) -> None:
    """Builds the Dockerfile's target `broker` under this tag, with these labels of the Open Container Initiative."""
    told = [word for name, value in labels.items() for word in ("--label", f"org.opencontainers.image.{name}={value}")]
    build = ("--build-arg", f"COMPILED={int(is_compiled)}", "--network", "host", "--target", "broker")
    run(_DOCKER, "build", "--quiet", "--file", "deploy/Dockerfile", *build, *told, "--tag", tag, ".", cwd=CHECKOUT)


def base_of_images() -> str:
    """Returns the name of the image that the Dockerfile begins with."""
    found = re.search(r"^FROM (\S+) AS base$", (CHECKOUT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    if found is None:
        raise CannotRelease("deploy/Dockerfile has no line `FROM … AS base`: what its images add to their base is not known")
    return found[1]


def added_bytes(tag: str) -> int:
    """Returns how much larger the image is than its base, unpacked. Pulls the base if the engine does not keep it."""
    base = base_of_images()
    if not run(_DOCKER, "image", "ls", "--quiet", base, cwd=CHECKOUT).strip():
        run(_DOCKER, "pull", "--quiet", base, cwd=CHECKOUT)
    sizes = [int(run(_DOCKER, "image", "inspect", "--format", "{{.Size}}", name, cwd=CHECKOUT)) for name in (tag, base)]
    return sizes[0] - sizes[1]


def version_in(tag: str) -> str:
    """Returns what the broker in the image says of itself."""
    return run(_DOCKER, "run", "--rm", "--network", "none", tag, "python3", "-c", _VERSION, cwd=CHECKOUT).strip()


def refuse_image(tag: str, added: int, told: str, version: str) -> None:
    """Raises CannotRelease if the image adds too much to its base, or if its broker is not of this version."""
    if not 0 < added <= MAX_BYTES:
        raise CannotRelease(f"image {tag}: it adds {added / 1e6:.1f} MB to its base, and may add {MAX_BYTES / 1e6:.0f}")
    if version not in re.split(r"[ ,]", told):
        raise CannotRelease(f"image {tag}: its broker says `{told}`, which is not version {version}")
