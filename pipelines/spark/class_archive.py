"""The class data sharing archive of Spark's Java classes, which makes the start of a small run much faster.

`make setup` creates it (`python -m pipelines.commands.make_class_archive`). It is valid for one version of Java and of pyspark.
The JVM ignores an archive that does not match.
"""

import os
import sys
from pathlib import Path
from typing import Final

WRITE: Final = "SPARK_CLASS_ARCHIVE_WRITE"
"""The environment variable with the path to which a run writes the archive."""
OTHER: Final = "SPARK_CLASS_ARCHIVE"
"""The environment variable with the path of another archive; "" means none."""


def path() -> Path | None:
    """Returns the archive's path, in this interpreter's prefix or from the environment, or None if the variable is empty."""
    chosen = os.environ.get(OTHER)
    return Path(sys.prefix) / "spark-classes.jsa" if chosen is None else Path(chosen) if chosen else None


def options() -> list[str]:
    """Returns the JVM's options that use or write the archive; empty without an archive."""
    if target := os.environ.get(WRITE):
        return [f"-XX:ArchiveClassesAtExit={target}"]
    archive = path()
    usable = archive is not None and archive.is_file() and " " not in str(archive)
    return [f"-XX:SharedArchiveFile={archive}"] if usable else []
