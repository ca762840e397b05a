"""An archive of the Java classes that Spark loads: reading it as a whole saves much of a small run's start.

`make setup` lets a JVM write it once (`python -m pipelines.commands.make_class_archive`). It belongs to one Java and one pyspark:
the JVM ignores an archive that does not fit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

WRITE: Final = "SPARK_CLASS_ARCHIVE_WRITE"
"""Set in the environment of a run that shall write the archive: to which file."""
OTHER: Final = "SPARK_CLASS_ARCHIVE"
"""Names another archive than the one beside the packages; "" means none."""


def path() -> Path | None:
    """Returns the archive's path: beside this interpreter's packages, or the one in the environment; None if that is empty."""
    chosen = os.environ.get(OTHER)
    return Path(sys.prefix) / "spark-classes.jsa" if chosen is None else Path(chosen) if chosen else None


def options() -> list[str]:
    """Returns the JVM's options to use or to write the archive; none without an archive."""
    if target := os.environ.get(WRITE):
        return [f"-XX:ArchiveClassesAtExit={target}"]
    archive = path()
    usable = archive is not None and archive.is_file() and " " not in str(archive)
    return [f"-XX:SharedArchiveFile={archive}"] if usable else []
