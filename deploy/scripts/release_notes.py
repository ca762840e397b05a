"""The notes of a release, which are its section of CHANGELOG.md; and links that work outside of the repository."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from deploy.scripts.site_pages import LINK

_SECTION: Final = re.compile(r"^## \[([^]]+)\](?: - (\d{4}-\d\d-\d\d))?\n", re.MULTILINE)
_REMOTE: Final = re.compile(r"(?:https?://|(?:ssh://)?git@)(?:[^@/]+@)?(?P<host>[^:/]+)(?::\d+)?[:/](?P<path>.+?)(?:\.git)?/*")
"""What git calls a repository of a forge: by HTTP, or by SSH in both spellings."""


class CannotRelease(Exception):
    """This checkout is no release; the text says what to do about it."""


def notes_of(changelog: str, version: str) -> str:
    """Returns the newest release's section. Raises CannotRelease if that is not `version`, or if changes are unreleased."""
    parts = _SECTION.split(changelog)[1:]
    sections = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
    unreleased = next((text for name, _, text in sections if name == "Unreleased"), "")
    if unreleased.strip():
        raise CannotRelease(f"CHANGELOG.md has changes under [Unreleased]: give them a heading, `## [{version}] - YYYY-MM-DD`")
    released = [(name, day, text) for name, day, text in sections if name != "Unreleased"]
    if not released or released[0][0] != version:
        newest = released[0][0] if released else "none"
        raise CannotRelease(
            f"rocketmq_broker.__version__ is {version}, and the newest release in CHANGELOG.md is {newest}: make them agree"
        )
    if not released[0][1]:
        raise CannotRelease(f"CHANGELOG.md does not say when {version} was released: `## [{version}] - YYYY-MM-DD`")
    return released[0][2].strip() + "\n"


def address_of(remote: str) -> str:
    """Returns the address in a browser of the repository that git calls `remote`; "" if that is no forge's, such as a folder."""
    found = _REMOTE.fullmatch(remote.strip())
    return f"https://{found['host']}/{found['path']}" if found else ""


def with_links(page: str, address: str, tag: str, folder: str = "") -> str:
    """Returns a page of this folder with links to the repository's files at this tag; without an address, with text and path.

    The repository lies at `address` in a browser, with paths as on GitHub, which GitLab understands as well.
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
