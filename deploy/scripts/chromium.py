"""The machine's own Chromium, for drawings and for tests."""

import shutil
from typing import Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Returns the program's path; None without one."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)
