"""Tests which releases `make release` refuses, and the files that it writes beside the distributions."""

import hashlib
import io
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from deploy.scripts.build_wheels import sources_with_links
from deploy.scripts.release import CHECKOUT, problems_of, refuse_changes, sums_of, with_version
from deploy.scripts.release_notes import CannotRelease
from deploy.scripts.site_pages import LINK
from rocketmq_broker import __version__

METADATA = "Metadata-Version: 2.4\nName: rocketmq-broker\nVersion: 1.2.0\nLicense-Expression: Apache-2.0\n"


def test_a_checkout_with_changes_is_refused_and_they_are_named() -> None:
    refuse_changes("")
    with pytest.raises(CannotRelease, match=r"uncommitted changes; commit or discard them:\n M Makefile\n\?\? notes\.txt$"):
        refuse_changes(" M Makefile\n?? notes.txt\n")


def wheel(folder: Path, metadata: str) -> Path:
    file = folder / "rocketmq_broker-1.2.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("rocketmq_broker/__init__.py", "")
        written.writestr("rocketmq_broker-1.2.0.dist-info/METADATA", metadata)
    return file


def sdist(folder: Path, metadata: str) -> Path:
    file = folder / "rocketmq_broker-1.2.0.tar.gz"
    with tarfile.open(file, "w:gz") as written:
        for name in ("rocketmq_broker.egg-info/PKG-INFO", "PKG-INFO"):
            entry = tarfile.TarInfo(f"rocketmq_broker-1.2.0/{name}")
            content = metadata.encode() if name == "PKG-INFO" else b"of setuptools"
            entry.size = len(content)
            written.addfile(entry, io.BytesIO(content))
    return file


@pytest.mark.parametrize("distribution", [wheel, sdist])
@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        (METADATA, ""),
        (METADATA.replace("1.2.0", "1.1.0"), "version 1.1.0, expected 1.2.0"),
        (METADATA.replace("License-Expression: Apache-2.0\n", ""), "no license"),
        (METADATA + "Requires-Dist: not a requirement!\n", "requires-dist"),
        (METADATA + "Description-Content-Type: text/word\n", "description-content-type"),
        (METADATA.replace("Name: rocketmq-broker\n", ""), "name"),
    ],
)
def test_what_an_index_would_refuse_is_named(distribution, metadata: str, problem: str, tmp_path: Path) -> None:
    file = distribution(tmp_path, metadata)
    problems = problems_of(file, "1.2.0")
    assert all(one.startswith(file.name) for one in problems)
    assert problem in "\n".join(problems)
    assert bool(problems) == bool(problem)


def test_the_sbom_is_told_the_version_of_the_broker() -> None:
    project = (CHECKOUT / "broker" / "pyproject.toml").read_text()
    assert tomllib.loads(with_version(project, "1.2.0"))["project"]["version"] == "1.2.0"
    with pytest.raises(CannotRelease, match="needs a static version"):
        with_version("[project]\n", "1.2.0")


def test_the_sums_are_as_sha256sum_checks_them(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "NOTES.md").write_bytes(b"notes")
    (tmp_path / "SHA256SUMS").write_text("of the time before")
    assert sums_of(tmp_path) == "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in (("NOTES.md", b"notes"), ("b.whl", b"wheel"))
    )


def test_the_readme_of_a_release_leads_to_the_repository_at_its_tag(tmp_path: Path) -> None:
    readme = (sources_with_links(tmp_path, "https://forge.example/shop") / "broker" / "README.md").read_text()
    links = [found["target"] for found in LINK.finditer(readme) if found["target"]]
    files = f"https://forge.example/shop/blob/v{__version__}/"
    assert f"{files}docs/troubleshooting.md" in links
    assert [link for link in links if not link.startswith(files)] == []
    assert [link for link in links if not (CHECKOUT / link.removeprefix(files).partition("#")[0]).exists()] == []
