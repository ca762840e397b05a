"""Tests a release's notes: which section they contain, and the targets of their links."""

import pytest

from deploy.scripts.release_notes import CannotRelease, address_of, notes_of, with_links

INTRODUCTION = "# Changelog\n\nA sentence.\n\n"
CHANGELOG = INTRODUCTION + (
    "## [Unreleased]\n\n## [1.2.0] - 2026-11-25\n\n### Added\n- A thing.\n\n## [1.1.0] - 2026-11-22\n\n### Added\n- Old.\n"
)


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes_of(CHANGELOG, "1.2.0") == "### Added\n- A thing.\n"


def test_a_changelog_that_begins_with_its_release_has_notes_too() -> None:
    assert notes_of(CHANGELOG.replace("## [Unreleased]\n\n", ""), "1.2.0") == "### Added\n- A thing.\n"


@pytest.mark.parametrize(
    ("changelog", "version", "reason"),
    [
        (CHANGELOG, "1.1.0", r"is 1\.1\.0, but the newest release in CHANGELOG.md is 1\.2\.0"),
        (CHANGELOG, "1.3.0", r"is 1\.3\.0, but the newest release in CHANGELOG.md is 1\.2\.0"),
        (CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- A bug.\n"), "1.2.0", r"changes under \[Unreleased\]"),
        (CHANGELOG.replace(" - 2026-11-25", ""), "1.2.0", r"has no date for 1\.2\.0"),
        (INTRODUCTION + "## [Unreleased]\n", "1.2.0", "is none"),
    ],
    ids=["an older version", "a newer version", "changes that are not released", "no day", "no release"],
)
def test_a_version_that_is_not_the_newest_release_with_its_day_is_refused(changelog: str, version: str, reason: str) -> None:
    with pytest.raises(CannotRelease, match=reason):
        notes_of(changelog, version)


@pytest.mark.parametrize(
    "remote",
    [
        "https://forge.example/shop/messages.git\n",
        "https://forge.example/shop/messages/",
        "https://who:secret@forge.example/shop/messages.git",
        "http://forge.example:3000/shop/messages",
        "git@forge.example:shop/messages.git",
        "ssh://git@forge.example/shop/messages.git",
        "ssh://git@forge.example:2222/shop/messages",
    ],
)
def test_a_forge_s_repository_has_an_address_in_a_browser(remote: str) -> None:
    assert address_of(remote) == "https://forge.example/shop/messages"


@pytest.mark.parametrize("remote", ["", "/srv/git/messages", "../messages", "file:///srv/git/messages"])
def test_a_folder_has_no_address_in_a_browser(remote: str) -> None:
    assert address_of(remote) == ""


NOTES = "- One ([how](docs/x.md#part)), [two](https://semver.org/), `[no](link.md)`, ![picture](docs/a.svg)\n"


def test_links_to_files_lead_to_the_release_s_files() -> None:
    assert with_links(NOTES, "https://forge.example/shop", "v1.2.0") == (
        "- One ([how](https://forge.example/shop/blob/v1.2.0/docs/x.md#part)), [two](https://semver.org/), `[no](link.md)`, "
        "![picture](https://forge.example/shop/blob/v1.2.0/docs/a.svg)\n"
    )


def test_without_an_address_links_to_files_become_their_paths() -> None:
    assert with_links(NOTES, "", "v1.2.0") == (
        "- One (how (`docs/x.md`)), [two](https://semver.org/), `[no](link.md)`, picture (`docs/a.svg`)\n"
    )
