"""Renders the folded parts of a page: waits with their length, and other events as a count that opens to a list."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rocketmq_broker.testing.simulation.page.markup import escaped, moment_text, wait_text
from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent

LONG_WAIT_NS: Final = 1_000_000_000
"""The minimum length in nanoseconds of a wait that the page marks."""
_MAX_BYTES: Final = 400_000
"""The maximum total size in bytes of the lines in all folds of a page."""
_MAX_LINE_LENGTH: Final = 160
_MAX_KINDS: Final = 4


class Folds:
    """Renders the folds of one page. Lists events up to the size limit, and only counts the remaining ones."""

    def __init__(self) -> None:
        """Creates empty folds."""
        self._left = _MAX_BYTES

    def fold(self, waited_ns: int, skipped: Sequence[ReportedEvent], beside: str = "") -> str:
        """Returns the HTML between two shown events, empty if no event was skipped. `beside` is further HTML for the row."""
        wait = f'<b class="at">… {wait_text(waited_ns)} …</b>' if waited_ns >= LONG_WAIT_NS else ""
        if not (wait or skipped):
            return ""
        return f'<li class="fold{" wait" if wait else ""}">{wait}{beside}{self._list(skipped) if skipped else ""}</li>\n'

    def _list(self, skipped: Sequence[ReportedEvent]) -> str:
        others = f"{len(skipped):,} other{'' if len(skipped) == 1 else 's'} ({_kinds(skipped)})"
        return f'<details><summary>{others}</summary><pre tabindex="0">{self._lines(skipped)}</pre></details>'

    def _lines(self, skipped: Sequence[ReportedEvent]) -> str:
        lines: list[str] = []
        for happening in skipped:
            line = _line(happening)
            size = len(line.encode()) + 1
            if size > self._left:
                lines.append(f"… and {len(skipped) - len(lines):,} more")
                break
            self._left -= size
            lines.append(line)
        return "\n".join(lines)


def _line(happening: ReportedEvent) -> str:
    way = f"{happening.process} → {happening.to}" if happening.to else happening.process
    return f"{moment_text(happening.at_ns)}  {escaped(f'{way}: {happening.text}', _MAX_LINE_LENGTH)}"


def _kinds(happenings: Sequence[ReportedEvent]) -> str:
    counts = Counter(happening.kind for happening in happenings)
    if len(counts) == 1:
        return escaped(next(iter(counts)))
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = [f"{escaped(kind)} {count:,}" for kind, count in most[:_MAX_KINDS]]
    return ", ".join(listed) + (", …" if len(most) > _MAX_KINDS else "")
