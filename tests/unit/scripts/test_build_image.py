"""Tests which images a release refuses, and that it builds no image without Docker.

tests/foreign/docker/test_broker_image.py builds an image.
"""

from pathlib import Path

import pytest

from deploy.scripts.build_image import MAX_BYTES, base_of_images, refuse_image, released_image
from deploy.scripts.release_notes import CannotRelease

TAG = "rocketmq-broker:1.2.0"
TOLD = "rocketmq-broker 1.2.0, compiled, CPython 3.11.2"


def test_an_image_of_the_release_s_size_and_version_passes() -> None:
    refuse_image(TAG, MAX_BYTES, TOLD, "1.2.0")


@pytest.mark.parametrize("added", [MAX_BYTES + 1, 0, -1])
def test_an_image_of_another_size_is_refused(added: int) -> None:
    with pytest.raises(CannotRelease, match=rf"too large: {added / 1e6:.1f} MB over its base, at most 80 MB"):
        refuse_image(TAG, added, TOLD, "1.2.0")


@pytest.mark.parametrize("version", ["1.2", "1.2.1", "2.0"])
def test_an_image_of_another_version_is_refused(version: str) -> None:
    with pytest.raises(CannotRelease, match="not version"):
        refuse_image(TAG, MAX_BYTES, TOLD, version)


def test_without_docker_the_image_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(released_image("1.2.0", "abc", is_compiled=True)) == ["no image: no Docker engine answers"]


def test_the_base_is_the_one_that_the_dockerfile_names() -> None:
    assert base_of_images() == "python:3.11-slim-bookworm"
