"""Tests of the report page in a browser."""

import struct
import subprocess
from pathlib import Path

import pytest

from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import Tolerance
from pipelines.reporting.page.page import write_page
from tests.foreign.browser.browser import program_of
from tests.unit.pipelines.page.rows import AS_OF_MS, MINUTE_MS, matched, outcome, row

HOSTILE = "<script>document.title = 'taken over'</script>"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]


def browse(page: Path, *arguments: str) -> str:
    profile = page.with_name("profile")
    command = [
        program_of("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={profile}", *arguments, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout


@pytest.fixture
def page(tmp_path: Path) -> Path:
    rows = [matched(40, latency_step=30, ago_ms=minutes * MINUTE_MS) for minutes in range(20)]
    lost = row("missing_credit", cause="dead_letter", order_id=HOSTILE, half_at_ms=AS_OF_MS, at_stake_cents=1250)
    path = tmp_path / "page.html"
    write_page(path, outcome(*rows, lost, row("in_flight", cause="pending", order_id="waits")), CutOff(AS_OF_MS), Tolerance())
    return path


def test_a_browser_shows_verdict_chart_and_breaks_and_runs_nothing(page: Path) -> None:
    shown = browse(page, "--dump-dom")
    assert "inconsistent: 802 orders, 800 credits, 1 lost, 0 doubled" in shown
    assert shown.count("<rect ") == 3 * 20
    assert shown.count('<details class="break">') == 2
    assert "taken over</title>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_browser_draws_it(page: Path) -> None:
    picture = page.with_name("page.png")
    browse(page, f"--screenshot={picture}", "--window-size=1100,1400")
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1100, 1400)
    assert len(data) > 20_000, "an empty page is far smaller"
