"""The screens of `make up` show only commands that work in a checkout, where the package is not installed."""

import re
from pathlib import Path

import demo.up

TEMPLATES = Path(demo.up.__file__).parent / "templates"


def test_a_screen_runs_the_programs_of_the_checkout_by_python_alone() -> None:
    named = {command for page in TEMPLATES.glob("*.html") for command in re.findall(r"\.venv/bin/\S+", page.read_text())}
    assert named == {".venv/bin/python"}
