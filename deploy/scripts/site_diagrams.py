"""An mkdocs hook that replaces each Mermaid diagram with a drawing, so that the site needs no script.

`make diagrams` draws each diagram twice into docs/diagrams: for light pages and for dark pages. Each drawing contains a hash of
the Mermaid text from which it was made.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

DOCS: Final = Path(__file__).parents[2] / "docs"
DRAWINGS: Final = DOCS / "diagrams"
SCHEMES: Final = ("light", "dark")
_PART: Final = re.compile(r"^#+ (?P<heading>[^\n]+)$|^```mermaid\n(?P<mermaid>.*?)^```$|^```.*?^```$", re.DOTALL | re.MULTILINE)
"""Matches a heading, a diagram or another code block. Lines in a code block are not headings."""


@dataclass(frozen=True, slots=True)
class Diagram:
    """A Mermaid diagram of a page."""

    name: str
    """The name of the diagram's drawings: the page's name, and the number of the diagram on the page, counted from 1."""
    heading: str
    """The text of the last heading above the diagram."""
    mermaid: str
    begin: int
    end: int
    """The position in the page at which the diagram ends."""

    @property
    def origin(self) -> str:
        """The text in the first line of the diagram's drawings. It contains a hash of the Mermaid text."""
        return f"drawn by make diagrams from Mermaid {hashlib.sha256(self.mermaid.encode()).hexdigest()[:16]}"

    def drawing(self, scheme: str) -> Path:
        """Returns the path of the diagram's drawing for light or for dark pages."""
        return DRAWINGS / f"{self.name}-{scheme}.svg"

    @property
    def is_drawn(self) -> bool:
        """True if both drawings exist and were made from the current Mermaid text."""
        files = [self.drawing(scheme) for scheme in SCHEMES]
        return all(file.exists() and self.origin in file.read_text().partition("\n")[0] for file in files)


def diagrams_in(markdown: str, page: str) -> Iterator[Diagram]:
    """Yields the diagrams of a page in order."""
    heading, number = page, 0
    for found in _PART.finditer(markdown):
        if found["heading"] is not None:
            heading = found["heading"]
        elif found["mermaid"] is not None:
            number += 1
            yield Diagram(f"{page}-{number}", heading, found["mermaid"], found.start(), found.end())


def diagrams_of_site() -> list[Diagram]:
    """Returns all diagrams of the site."""
    return [diagram for file in sorted(DOCS.glob("*.md")) for diagram in diagrams_in(file.read_text(), file.stem)]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Returns the page's text with drawings instead of diagrams. Raises PluginError if a drawing is missing or outdated.

    Each drawing links to its full size, because some drawings contain much text. Material for MkDocs shows an image only on light
    or only on dark pages, depending on the end of the image's URL. The link leads to the drawing for light pages.
    """
    parts, position = [], 0
    for diagram in diagrams_in(markdown, Path(page.file.src_uri).stem):
        if not diagram.is_drawn:
            raise PluginError(
                f"{page.file.src_uri}, {diagram.heading!r}: the diagram's drawing is missing or outdated; run make diagrams"
            )
        images = [f"![{diagram.heading}](diagrams/{diagram.drawing(scheme).name}#only-{scheme})" for scheme in SCHEMES]
        full_size = f"diagrams/{diagram.drawing('light').name}"
        parts += [markdown[position : diagram.begin], f'[{"".join(images)}]({full_size} "Open in full size")']
        position = diagram.end
    return "".join([*parts, markdown[position:]])
