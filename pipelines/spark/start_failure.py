"""Determines why Spark did not start, from its environment or from the first error in its output."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MIN_JAVA: Final = 17
MIN_OPEN_FILES: Final = 1_024
"""The limit of open files for Spark. A lower limit is raised to this number before Spark starts."""
_FILES_OF_A_START: Final = 300
"""The minimum limit of open files for Spark's start, which opens 250 jars. With less, Spark fails with misleading errors."""
_JAVA_WITHIN_S: Final = 20
_ERRORS: Final = (
    # The JVM prints the error about its options before this line.
    r"^(?!WARNING)(\S[^\n]*)\nError: Could not create the Java Virtual Machine",
    r"^Error occurred during initialization of VM\n(\S[^\n]*)",
    r'^(?:Exception in thread "[^"\n]*" |: )?(?:[\w$]+\.)+(\w*(?:Exception|Error): [^\n]+)',
    r"^Error: ([^\n]+)",
    r"^[\d/]+ [\d:]+ ERROR \w+: ([^\n]+)",
)
_SPARK_IN: Final = re.compile(r"spark-core_[\d.]+-(\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class SparkStart:
    """The environment in which Spark is started."""

    environment: Mapping[str, str]
    pyspark: str
    """The version of pyspark."""
    open_files: int
    """The limit of open files (`ulimit -n`)."""

    @property
    def java(self) -> str | None:
        """The path of `java` that Spark's scripts run; None if there is none."""
        home = self.environment.get("JAVA_HOME")
        return shutil.which("java", path=f"{home}/bin" if home else self.environment.get("PATH"))

    def obstacle(self) -> str | None:
        """Returns the reason why Spark cannot start, as far as it is known before the start, or None."""
        home, spark_home = self.environment.get("JAVA_HOME"), self.environment.get("SPARK_HOME")
        if self.java is None:
            where = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
            return f"Spark requires Java {MIN_JAVA} or newer, but there is none {where}"
        if not spark_home:
            return None
        if not (Path(spark_home) / "bin" / "spark-submit").is_file():
            return f"SPARK_HOME ({spark_home}) does not contain Spark; unset it to use the Spark of the package pyspark"
        found = _spark_version(Path(spark_home))
        if found is not None and found != ".".join(self.pyspark.split(".")[:2]):
            return (
                f"SPARK_HOME ({spark_home}) contains Spark {found}, but the package pyspark is {self.pyspark}; unset SPARK_HOME"
            )
        return None

    def why_it_failed(self, printed: str) -> str:
        """Returns the reason why Spark did not start, from its environment and from its output `printed`."""
        version = None if self.java is None else java_version(self.java)
        if version is None:
            return f"Spark requires Java {MIN_JAVA} or newer, but {self.java} does not run"
        if version < MIN_JAVA:
            return f"Spark requires Java {MIN_JAVA} or newer, but {self.java} is Java {version}; set JAVA_HOME to a newer one"
        if "Too many open files" in printed or self.open_files < _FILES_OF_A_START:
            return f"Spark opens more files than the limit of {self.open_files}; run ulimit -n 4096"
        error = first_error(printed)
        arguments = "; PYSPARK_SUBMIT_ARGS is set" if "PYSPARK_SUBMIT_ARGS" in self.environment else ""
        return f"Spark did not start: {error or 'it printed no error'}{arguments}"


def first_error(printed: str) -> str | None:
    """Returns the first error in the output of a JVM, with the name of its class if there is one."""
    for pattern in _ERRORS:
        if found := re.search(pattern, printed, re.MULTILINE):
            return found[1].strip().rstrip(".")
    return None


def java_version(java: str) -> int | None:
    """Returns the major version of the program `java`, such as 17, or None if the version is unknown."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_JAVA_WITHIN_S, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else None


def _spark_version(home: Path) -> str | None:
    names = sorted(path.name for path in (home / "jars").glob("spark-core_*.jar"))
    found = _SPARK_IN.match(names[0]) if names else None
    return found[1] if found else None
