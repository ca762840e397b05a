"""Extracts release notes from CHANGELOG.md, and changes links so that they work outside the repository."""

import posixpath
import re
from typing import Final

from deploy.scripts.site_pages import LINK

_SECTION: Final = re.compile(r"^## \[([^]]+)\](?: - (\d{4}-\d\d-\d\d))?\n", re.MULTILINE)
_REMOTE: Final = re.compile(r"(?:https?://|(?:ssh://)?git@)(?:[^@/]+@)?(?P<host>[^:/]+)(?::\d+)?[:/](?P<path>.+?)(?:\.git)?/*")
"""The URL of a Git remote: an HTTP URL, or one of the two forms of an SSH URL."""


class CannotRelease(Exception):
    """Raised if the checkout cannot be released. The error message contains the reason and the remedy."""


def notes_of(changelog: str, version: str) -> str:
    """Returns the section about the newest release in a changelog.

    Raises CannotRelease if the newest release is not `version` or has no date, or if the changelog has unreleased changes.
    """
    parts = _SECTION.split(changelog)[1:]
    sections = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
    unreleased = next((text for name, _, text in sections if name == "Unreleased"), "")
    if unreleased.strip():
        raise CannotRelease(f"CHANGELOG.md has changes under [Unreleased]: give them a heading, `## [{version}] - YYYY-MM-DD`")
    released = [(name, day, text) for name, day, text in sections if name != "Unreleased"]
    if not released or released[0][0] != version:
        newest = released[0][0] if released else "none"
        raise CannotRelease(
            f"rocketmq_broker.__version__ is {version}, but the newest release in CHANGELOG.md is {newest}: make them equal"
        )
    if not released[0][1]:
        raise CannotRelease(f"CHANGELOG.md has no date for {version}: write `## [{version}] - YYYY-MM-DD`")
    return released[0][2].strip() + "\n"


def address_of(remote: str) -> str:
    """Returns the web address of a Git remote, or "" if the remote has none, for example because it is a local folder."""
    found = _REMOTE.fullmatch(remote.strip())
    return f"https://{found['host']}/{found['path']}" if found else ""


def with_links(page: str, address: str, tag: str, folder: str = "") -> str:
    """Returns the text of a page with links that lead to the repository's files at this tag.

    `folder` is the folder of the page. `address` is the web address of the repository; its paths have GitHub's format, which
    GitLab also supports. Without an address, each link is replaced by its text and its path.
    """

    def linked(found: re.Match[str]) -> str:
        target = found["target"]
        if not target or "://" in target:
            return found[0]
        path, mark, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(folder, path))
        if address:
            return f"{found['image']}[{found['text']}]({address}/blob/{tag}/{file}{mark}{anchor})"
        return f"{found['text']} (`{file}`)"

    return LINK.sub(linked, page)
