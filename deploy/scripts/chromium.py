"""Finds the installed Chromium, which draws the site's diagrams and runs browser tests."""

import shutil
from typing import Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Returns the path of the Chromium program, or None if none is installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)
