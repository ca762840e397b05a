"""Tables of figures that fit a terminal of any width. Columns that do not fit are moved to another table below."""

from collections.abc import Collection, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table

_LABEL: Final = 20
"""The maximum number of characters in a line of a label. Longer labels are wrapped."""
_GAP: Final = 2
"""The number of characters between two columns."""


def tables_within(
    width: int, headings: Sequence[str], rows: Sequence[Sequence[str]], *, labels: int = 1, section_ends: Collection[int] = ()
) -> list[Table]:
    """Returns the rows as one table, or as several tables that start with the same labels.

    Each table has as many columns as fit into `width`. The first `labels` columns are labels, which are wrapped. Figures are not
    wrapped, and headings are wrapped between words. A gap follows each row whose number is in `section_ends`.
    """
    widths = [
        max(cell_len(line) for line in (*heading.split(), *column)) for heading, *column in zip(headings, *rows, strict=True)
    ]
    for_labels = sum(min(_LABEL, each) + _GAP for each in widths[:labels])
    parts: list[list[int]] = []
    left = 0
    for column in range(labels, len(headings)):
        needed = widths[column] + _GAP
        if needed > left:
            parts.append([])
            left = width - for_labels + _GAP
        parts[-1].append(column)
        left -= needed
    return [_table(headings, rows, widths, [*range(labels), *part], labels, section_ends) for part in parts]


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    columns: Sequence[int],
    labels: int,
    section_ends: Collection[int],
) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        is_label = column < labels
        table.add_column(
            headings[column],
            justify="left" if is_label else "right",
            width=min(_LABEL, widths[column]) if is_label else widths[column],
        )
    for number, row in enumerate(rows):
        table.add_row(*(row[column] for column in columns), end_section=number in section_ends)
    return table
