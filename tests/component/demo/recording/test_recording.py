"""Tests of the demo's recording. The picture contains each line of the run in the original order and with its time."""

import os
import re
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from demo.recording.cast import Cast, Line, NoCast, read_cast, record
from demo.recording.picture import MAX_PAUSE_S, MIN_PAUSE_S, ROWS, picture, shown_at

DOCS = Path(__file__).parents[4] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def texts(drawn: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def test_a_program_that_runs_is_recorded_line_by_line_with_its_exit_code() -> None:
    program = "import os, sys; print('─ ' + os.environ['COLUMNS']); print('<b>'); sys.exit(3)"
    cast, exit_code = record("make it", [sys.executable, "-c", program], os.environ, width=80)
    assert ([line.text for line in cast.lines], exit_code) == (["─ 80", "<b>"], 3)
    assert 0 < cast.lines[0].at_s <= cast.lines[1].at_s


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    cast = Cast("make it", 80, (Line(0.5, "│ one"), Line(1.25, "")))
    cast.write(tmp_path / "it.cast")
    assert read_cast(tmp_path / "it.cast") == cast


@pytest.mark.parametrize(
    "content", ["", "not JSON", '{"version": 3}', '{"version": 2}', '{"version": 2, "width": 1, "command": ""}\n[1]']
)
def test_what_is_no_recording_is_refused_with_the_files_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "it.cast"
    file.write_text(content)
    with pytest.raises(NoCast, match=r"it\.cast"):
        read_cast(file)


def test_a_picture_has_the_command_and_each_line() -> None:
    drawn = picture(Cast("make it", 80, (Line(1, "a < b & c"), Line(2, "  consistent: 1 order"))))
    assert texts(drawn) == ["$ make it", "a < b & c", "  consistent: 1 order"]


def test_a_picture_is_scrolled_to_its_last_line_and_stands_so_without_animation() -> None:
    few, many = (picture(Cast("make it", 80, tuple(Line(number, "") for number in range(count)))) for count in (3, ROWS + 4))
    assert 'transform="translate(0 0)"' in few
    assert re.search(r'transform="translate\(0 -85\)"', many)  # 5 rows of 17: the command is a row as well


def test_an_animation_begins_with_its_end() -> None:
    drawn = picture(Cast("make it", 80, tuple(Line(number, "") for number in range(ROWS + 4))))
    lines = re.findall(r"@keyframes a\d+ \{ 0% \{ opacity: (\d); \}", drawn)
    assert lines == ["1"] * (ROWS + 4)
    assert "@keyframes paper { 0% { transform: translateY(-85px); }" in drawn


def test_pauses_are_neither_too_long_nor_too_short() -> None:
    times = shown_at([Line(0, ""), Line(0, ""), Line(0.5, ""), Line(60, "")])
    assert [round(after - before, 3) for before, after in pairwise(times)] == [MIN_PAUSE_S, 0.5, MAX_PAUSE_S]


def test_the_picture_in_the_documentation_is_drawn_from_the_recording_beside_it() -> None:
    cast = read_cast(DOCS / "demo.cast")
    assert (DOCS / "demo.svg").read_text() == picture(cast), "draw it again: python -m demo.recording --draw-only"


def test_the_recording_is_of_a_run_that_ended_well() -> None:
    said = [line.text for line in read_cast(DOCS / "demo.cast").lines]
    assert any("SIGKILL to the broker" in text for text in said)
    assert any(re.search(r"consistent: ([\d,]+) orders, \1 credits, 0 lost, 0 doubled", text) for text in said)
