"""Draws the Mermaid diagrams of the site into docs/diagrams. `make diagrams` runs this script.

Mermaid runs in the installed Chromium. Mermaid is downloaded from npm in a fixed version with a fixed checksum. A build of the
site needs neither Chromium nor npm.
"""

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

from deploy.scripts.browsers import MissingBrowser, find_browser
from deploy.scripts.pinned import CannotFetch, Pinned, npm_package
from deploy.scripts.site_diagrams import DRAWINGS, SCHEMES, Diagram, diagrams_of_site
from rocketmq_broker.stop_signals import until_interrupted

MERMAID: Final = Pinned("@mermaid-js/tiny", "12.0.0", "94f4bea4d69ae2766d6d29cd3321c9ed6be8c640852c57ef89d4f9999ada9783")
_SCRIPT: Final = "package/dist/mermaid.tiny.js"
_THEMES: Final = {"light": "neutral", "dark": "dark"}
_FONTS: Final = "Verdana, DejaVu Sans, sans-serif"
"""The fonts of the drawings. They are wide, so that the text still fits if the reader's browser uses another font."""
_DRAW: Final = """async ([text, theme, fonts]) => {
  mermaid.initialize({startOnLoad: false, theme, fontFamily: fonts, htmlLabels: true, deterministicIds: true,
    flowchart: {wrappingWidth: 400}, state: {wrappingWidth: 400}});
  const holder = document.createElement("div");
  holder.innerHTML = (await mermaid.render("drawing", text)).svg;
  const svg = holder.querySelector("svg"), box = svg.viewBox.baseVal;
  svg.setAttribute("width", Math.ceil(box.width));
  svg.setAttribute("height", Math.ceil(box.height));
  return new XMLSerializer().serializeToString(svg);
}"""


def main() -> None:
    """Draws all diagrams, and removes drawings that no page uses."""
    try:
        browser, mermaid = find_browser("chromium"), _mermaid()
    except (MissingBrowser, CannotFetch) as error:
        sys.exit(f"diagrams are drawn by Mermaid in Chromium: {error}")
    diagrams = diagrams_of_site()
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"]).new_page()
        page.add_script_tag(content=mermaid)
        drawings = {diagram.drawing(scheme): _drawn(page, diagram, scheme) for diagram in diagrams for scheme in SCHEMES}
    DRAWINGS.mkdir(exist_ok=True)
    for file in DRAWINGS.glob("*.svg"):
        file.unlink()
    for file, svg in drawings.items():
        file.write_text(svg)
    print(f"{len(drawings)} drawings of {len(diagrams)} diagrams in {DRAWINGS}")


def _drawn(page: Page, diagram: Diagram, scheme: str) -> str:
    svg = page.evaluate(_DRAW, [diagram.mermaid, _THEMES[scheme], _FONTS])
    return f"<!-- {diagram.origin} -->\n{svg}\n"


def _mermaid() -> str:
    """Returns the script of Mermaid's npm package. Raises CannotFetch."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(npm_package(MERMAID, Path(folder))) as archive:
        script = archive.extractfile(_SCRIPT)
        assert script is not None
        return script.read().decode()


if __name__ == "__main__":
    with until_interrupted("Stopped: not all diagrams are drawn."):
        main()
