"""The race prints its progress as text if it cannot draw a progress bar."""

from tutorials.race.results.progress import ProgressLines


def test_a_line_comes_every_ten_seconds_with_an_estimate_of_the_rest() -> None:
    now_s = [100.0]
    lines = ProgressLines("cells played", 90, lambda: now_s[0])
    told = []
    for done in range(1, 31):
        now_s[0] += 2.0
        told.append(lines.after(done))
    assert told[:4] == [None] * 4
    assert told[4] == "5 of 90 cells played in 10 s; about 170 s more"
    assert len([line for line in told if line]) == 6
