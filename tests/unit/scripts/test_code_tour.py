"""The tour for CodeTour equals docs/tour.md, and each step points to existing lines and files."""

import json
import re

from deploy.scripts.code_tour import ROOT, TOUR, tour

STEPS = [step for step in tour()["steps"] if "file" in step]


def test_the_tour_is_that_of_the_page() -> None:
    assert json.loads(TOUR.read_text()) == tour(), "write it again: python -m deploy.scripts.code_tour"


def test_it_has_the_twelve_stops_and_each_opens_at_its_lines() -> None:
    assert len(STEPS) == 12
    assert [len(re.findall(step["pattern"], (ROOT / step["file"]).read_text())) for step in STEPS] == [1] * 12


def test_its_links_lead_to_files_of_the_checkout() -> None:
    links = [link for step in tour()["steps"] for link in re.findall(r"\]\(([^)]+)\)", step["description"])]
    assert len(links) > 3
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_a_click_runs_the_test_of_each_stop() -> None:
    commands = [re.findall(r"^>> \.venv/bin/python -m pytest (\S+)$", step["description"], re.MULTILINE) for step in STEPS]
    assert [(ROOT / test).is_file() for tests in commands for test in tests] == [True] * 12
