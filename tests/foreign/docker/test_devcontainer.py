"""Builds the development container with the tool that editors use (npm's @devcontainers/cli)."""

import json
import shutil
import subprocess

import pytest

from demo.processes import PROJECT_ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]
CLI = "@devcontainers/cli@0.89.0"
IMAGE = "transactional-messages-devcontainer"


@pytest.mark.skipif(shutil.which("npx") is None, reason="npx of Node.js is not installed")
def test_the_devcontainer_is_built_and_has_what_make_setup_would_install_as_root(docker: str) -> None:
    workspace = ["--workspace-folder", str(PROJECT_ROOT), "--docker-path", docker, "--buildkit", "never"]
    built = subprocess.run(
        ["npx", "--yes", "--prefer-offline", CLI, "build", *workspace, "--image-name", IMAGE],
        capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    assert json.loads(built.stdout)["outcome"] == "success"
    programs = (
        "id -un; git --version; make --version; java -version 2>&1; redis-server --version; ls /usr/lib/postgresql/*/bin/initdb"
    )
    said = subprocess.run([docker, "run", "--rm", IMAGE, "sh", "-c", programs], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.startswith("developer\n")
