"""Tests the table of results."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.benchmarks.side_by_side.brokers import ASYNC, SYNC, Side
from lab.benchmarks.side_by_side.plan import Kind, Load
from lab.benchmarks.side_by_side.report import COLUMNS, Results
from lab.benchmarks.side_by_side.sample import Others, Sample

SENDS = Load(Kind.SENDS, SYNC, 32)
RESTART = Load(Kind.RESTART, ASYNC)
QUIET = Others(load_before=0.0)


def results(load: Load, ours: list[Sample], apache: list[Sample]) -> Results:
    made = Results({"Python": "3.11"})
    for side, samples in ((Side.OURS, ours), (Side.APACHE, apache)):
        for sample in samples:
            made.add(load, side, sample)
    return made


def sample(result: float, *, others: Others = QUIET, **more: Any) -> Sample:
    return Sample(result=result, start_s=0.5, others=others, **more)


def cell(made: Results, row: int, column: str) -> str:
    return made.rows()[row][COLUMNS.index(column)]


def test_the_ratio_is_that_of_the_medians() -> None:
    made = results(SENDS, [sample(100), sample(300), sample(900)], [sample(150)])
    assert made.ratio(SENDS) == pytest.approx(2)
    assert cell(made, 0, "ratio") == "2.00"


def test_every_broker_has_its_ratio_to_apaches() -> None:
    made = results(SENDS, [sample(300)], [sample(200)])
    made.add(SENDS, Side.INTERPRETED, sample(100))
    assert [cell(made, row, "ratio") for row in range(3)] == ["1.50", "0.50", ""]


def test_every_result_has_its_share_of_the_floors() -> None:
    made = results(SENDS, [sample(300)], [sample(200)])
    made.add(SENDS, Side.FLOOR, sample(400))
    assert [cell(made, row, "of floor") for row in range(3)] == ["0.75", "0.50", ""]
    assert [cell(made, row, "ratio") for row in range(3)] == ["1.50", "", ""]


def test_a_row_says_how_long_its_warm_up_took_and_whether_it_was_steady_then() -> None:
    warm = replace(sample(300), warm_up_s=13)
    made = results(SENDS, [warm, replace(warm, warm_up_s=40, is_steady=False)], [sample(200)])
    assert [cell(made, row, "warm-up s") for row in (0, 1)] == ["13, 40~", ""]


def test_where_less_is_better_the_ratio_says_how_many_times_quicker_ours_is() -> None:
    assert results(RESTART, [sample(2)], [sample(8)]).ratio(RESTART) == pytest.approx(4)


def test_there_is_no_ratio_while_one_broker_was_not_measured() -> None:
    assert results(SENDS, [sample(1)], []).ratio(SENDS) is None


def test_a_result_shows_its_least_and_its_most() -> None:
    made = results(SENDS, [sample(1000), sample(3000), sample(2000)], [])
    assert cell(made, 0, "result (min, max)") == "2,000 (1,000, 3,000)"


def test_what_a_load_does_not_tell_stays_empty() -> None:
    made = results(RESTART, [sample(2.5)], [sample(4.5)])
    assert [cell(made, 0, name) for name in ("p50 ms", "p99 ms", "CPU µs", "MiB")] == ["", "", "", ""]


def test_a_row_measured_on_a_busy_machine_is_marked_and_the_programs_are_named() -> None:
    others = Others(load_before=3.0, processors=0.8, programs="mypy 4.0 s")
    made = results(SENDS, [sample(1000, others=others)], [sample(1000)])
    assert [cell(made, row, "result (min, max)")[-1] for row in (0, 1)] == ["!", ")"]
    assert any("mypy 4.0 s" in line for line in made.footer())


def test_messages_that_were_dropped_show_as_a_share() -> None:
    made = results(SENDS, [sample(1, messages=100)], [sample(1, messages=100, dropped=60)])
    assert [cell(made, row, "dropped") for row in (0, 1)] == ["0", "60.0%"]


def test_the_footer_names_rows_below_what_is_wanted() -> None:
    assert "Ratio below the aim: SYNC sends 32 in flight, cold" in results(SENDS, [sample(11)], [sample(10)]).footer()
    assert not any("wanted" in line for line in results(SENDS, [sample(12)], [sample(10)]).footer())


def test_the_footer_names_rows_in_which_ours_needs_more_than_an_eighth_of_apaches_memory() -> None:
    more, equal = ([sample(2, peak_mib=mib)] for mib in (126, 125))
    apache = [sample(1, peak_mib=1000)]
    assert "More than 1/8 of Apache's memory: SYNC sends 32 in flight, cold" in results(SENDS, more, apache).footer()
    assert not any("memory" in line for line in results(SENDS, equal, apache).footer())


def test_the_footer_names_rows_in_which_ours_needs_more_than_half_of_apaches_cpu_time_or_is_below_half_of_the_floor() -> None:
    ours, apache = (replace(sample(300), cpu_us=cpu_us) for cpu_us in (51.0, 100.0))
    made = results(SENDS, [ours], [apache])
    made.add(SENDS, Side.FLOOR, sample(601))
    assert "More than 0.5 of Apache's CPU time: SYNC sends 32 in flight, cold" in made.footer()
    assert "Less than 0.5 of the floor: SYNC sends 32 in flight, cold" in made.footer()
    made = results(SENDS, [replace(ours, cpu_us=50.0)], [apache])
    made.add(SENDS, Side.FLOOR, sample(600))
    assert not any("0.5" in line for line in made.footer())


def test_messages_that_came_twice_are_in_the_footer() -> None:
    footer = results(SENDS, [sample(1, doubled=2)], [sample(1)]).footer()
    assert "SYNC sends 32 in flight, cold, ours: 0 requests failed, 2 messages delivered twice" in footer


def test_rows_keep_the_order_in_which_they_were_measured() -> None:
    made = results(SENDS, [sample(1)], [sample(1)])
    made.add(RESTART, Side.APACHE, sample(1))
    made.add(RESTART, Side.OURS, sample(1))
    assert [row[1] for row in made.rows()] == ["ours", "Apache", "ours", "Apache"]
    assert made.rows()[2][0] == "ASYNC restart, s to the first answer"


def test_what_is_written_has_every_sample(tmp_path: Path) -> None:
    results(SENDS, [sample(1), sample(2)], [sample(3)]).write(tmp_path)
    written = json.loads((tmp_path / "results.json").read_text())
    assert [(each["broker"], each["result"]) for each in written["samples"]] == [("ours", 1), ("ours", 2), ("Apache", 3)]
    assert (tmp_path / "results.md").read_text().startswith("| load | broker |")


@pytest.mark.parametrize("width", [80, 160])
def test_tables_fit_the_terminal_and_have_every_figure_in_one_piece(width: int) -> None:
    made = results(SENDS, [sample(123_456, peak_mib=1234.0)] * 3, [sample(98_765, peak_mib=9876.0)])
    made.add(Load(Kind.CHECKS, ASYNC), Side.OURS, sample(1.25))
    console = Console(width=width)
    with console.capture() as captured:
        console.print(*made.tables(console.width))
    printed = captured.get()
    assert max(map(len, printed.splitlines())) <= width
    for row in made.rows():
        assert all(figure in printed for figure in row[2:])
    words = {word for heading in COLUMNS for word in heading.split()}
    assert words <= set(printed.split())
