"""An mkdocs hook that adds tutorials and recipes to the site, and replaces links to files that are not pages.

In the repository, a page may link to any file. On the site, links to pages remain, and a link to another file is replaced by its
text, its path and its line, so that no link is broken.
"""

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
_FOLDER: Final = "tutorials"
"""The folder whose pages have the same paths on the site as in the repository. All other pages are in docs."""
LINK: Final = re.compile(
    r"^```.*?^```$|(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)|`[^`\n]*`", re.DOTALL | re.MULTILINE
)
"""Matches a link, or code. Code is matched so that links in it are not replaced."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the English and Chinese pages of tutorials and recipes, with their paths in the repository."""
    names = ("README.md", "README.zh.md")
    for page in sorted(page for name in names for page in ROOT.glob(f"{_FOLDER}/**/{name}")):
        source = page.relative_to(ROOT).as_posix()
        files.append(File.generated(config, source, content=page.read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Returns the page's text with links that work on the site. Code blocks are unchanged."""
    source = page.file.src_uri
    in_repository = source if source.startswith(_FOLDER) else f"docs/{source}"
    return LINK.sub(lambda found: _linked(found, in_repository, source, files), markdown)


def _linked(found: re.Match[str], in_repository: str, source: str, files: Files) -> str:
    path, _, anchor = (found["target"] or "").partition("#")
    if not path or "://" in path:
        return found[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), path))
    page = page_of(target)
    if files.get_file_from_path(page) is None:
        line = f":{anchor.removeprefix('L')}" if anchor else ""
        return f"{found['text']} (`{target}{line}`)"
    relative = posixpath.relpath(page, posixpath.dirname(source) or ".")
    return f"{found['image']}[{found['text']}]({relative}{f'#{anchor}' if anchor else ''})"


def page_of(target: str) -> str:
    """Returns the path on the site of a page with the path `target` in the repository."""
    homes = {"README.md": "index.md", "README.zh.md": "zh.md"}
    return homes.get(target, target.removeprefix("docs/"))
