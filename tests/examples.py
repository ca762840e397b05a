"""Profiles of property tests: `tests` has 100 examples each, `quick` 20, for a run that repeats the tests elsewhere.

Loaded by `tests/conftest.py`, or by `-p tests.examples` where that file's libraries are absent: on Windows and other Pythons.
"""

from typing import Final

from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine only.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("tests"), max_examples=20)
settings.load_profile("tests")

QUICK: Final = ("-p", "tests.examples", "--hypothesis-profile=quick")
