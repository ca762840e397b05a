"""Finds the installed browsers. Chromium draws the site's diagrams, and browser tests run in Chromium and in Firefox."""

import shutil
from typing import Final

_NAMES: Final = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox-esr", "firefox"),
}
"""The names of each browser's program. The first is that of Debian's package, too."""


class MissingBrowser(Exception):
    """Raised if a browser is not installed. The error message contains the command that installs it on Debian."""


def find_browser(kind: str) -> str:
    """Returns the path of the program of "chromium" or "firefox". Raises MissingBrowser."""
    for name in _NAMES[kind]:
        if path := shutil.which(name):
            return path
    raise MissingBrowser(f"no {kind} program: apt-get install {_NAMES[kind][0]}")
