"""Tests the position of an event in the picture of lanes."""

import pytest

from rocketmq_broker.testing.simulation.page import ReportedEvent, WorldReport, page_of
from rocketmq_broker.testing.simulation.page.grid import Grid, grid_of
from tests.unit.testing.simulation.read_page import PageTag, read_page, shown_rows, text_of
from tests.unit.testing.simulation.world_reports import at, failed_world

LANES = Grid(("a", "b", "c"))


def world_of(*happenings: ReportedEvent) -> WorldReport:
    return WorldReport(seed=1, title="small", lanes=("a", "b"), happenings=happenings)


def arrow_of(name: str) -> PageTag:
    (row,) = [row for row in shown_rows(read_page(page_of(failed_world()))) if name in text_of(row)]
    (arrow,) = [part for part in row.content if isinstance(part, PageTag) and "arrow" in part.classes]
    return arrow


def test_only_lanes_in_which_something_happens_are_shown_in_their_order() -> None:
    happenings = [at(1, "c", "send", "sent", to="a"), at(2, "", "violation", "broken")]
    assert grid_of(("a", "b", "c"), happenings).lanes == ("a", "c")


def test_a_lane_that_nobody_announced_stands_at_the_end() -> None:
    happenings = [at(1, "new", "row", "one"), at(2, "b", "row", "two")]
    assert grid_of(("a", "b"), happenings).lanes == ("b", "new")


def test_an_arrow_goes_from_line_to_line() -> None:
    assert [str(LANES.arrow("a", "c")), str(LANES.arrow("c", "a")), str(LANES.arrow("b", "c"))] == ["3/7", "3/7", "5/7"]


def test_the_text_of_an_arrow_is_half_a_lane_wider_on_each_side() -> None:
    assert str(LANES.above_arrow("a", "b")) == "2/6"


@pytest.mark.parametrize(("lane", "columns"), [("a", "3/8"), ("b", "5/8"), ("c", "2/7")])
def test_a_note_stands_beside_its_line_within_the_picture(lane: str, columns: str) -> None:
    assert str(LANES.note(lane)) == columns


def test_a_note_in_one_of_the_last_lanes_stands_on_the_side_with_more_space() -> None:
    assert [str(Grid(tuple("abcdef")).note(lane)) for lane in "def"] == ["9/14", "6/11", "8/13"]


def test_a_note_in_the_only_lane_stands_within_the_picture() -> None:
    assert str(Grid(("a",)).note("a")) == "3/4"


@pytest.mark.parametrize(("name", "way", "columns"), [("first time", "right", "9/13"), ("check-back:", "left", "5/9")])
def test_an_arrow_points_to_the_side_of_its_receiver(name: str, way: str, columns: str) -> None:
    arrow = arrow_of(name)
    assert (arrow.classes, arrow.attributes["style"]) == (["arrow", way], f"grid-column:{columns}")


def test_a_message_to_oneself_is_a_note() -> None:
    happening = at(1, "a", "send", "to itself", to="a")
    (row,) = shown_rows(read_page(page_of(world_of(happening))))
    assert [part.classes for part in row.content if isinstance(part, PageTag)] == [["at"], ["who"], ["note"]]


def test_the_line_of_a_dead_process_is_struck_until_it_starts_again() -> None:
    world = world_of(
        at(1, "a", "death", "a dies"), at(2, "b", "row", "while it is dead"), at(3, "a", "start", "a starts"),
        at(4, "a", "start", "a starts again"), at(5, "b", "row", "after that"),
    )  # fmt: skip
    rows = shown_rows(read_page(page_of(world)))
    struck = [text_of(row) for row in rows if any("down" in part.classes for part in row.content if isinstance(part, PageTag))]
    assert struck == ["0:02.000 b while it is dead"]


def test_lanes_without_a_happening_are_named_below_the_picture() -> None:
    assert "No events in names and inventory." in page_of(failed_world())
