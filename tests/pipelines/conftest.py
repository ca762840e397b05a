"""What the tests of the pipelines' commands share."""

import pytest

from tests.unit.pipelines.conftest import JVM_FOR_SMALL_TABLES


@pytest.fixture(autouse=True)
def jvm_for_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands inherit it."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", JVM_FOR_SMALL_TABLES)
