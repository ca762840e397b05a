"""Updates each Chinese page PAGE.zh.md from its English page PAGE.md.

A Chinese page contains the code blocks of the English page, and its links lead to Chinese pages where these exist.
Its last line contains digests of the English sections' prose at the time of the translation. `python -m
deploy.scripts.translations` updates code blocks and links of all Chinese pages. `python -m
deploy.scripts.translations PAGE.md` also updates the digests of one page. Run the second command after the
translation of the page has been updated.
"""

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rocketmq_broker.stop_signals import until_interrupted

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = re.compile(r"(?:^<!-- \S+\.\w+(?: \w+)? -->\n)?^```.*?^```$", re.DOTALL | re.MULTILINE)
"""Matches a code block, including the comment above it that names the block's file."""
LINK: Final = re.compile(r"(?<=\]\()(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
"""Matches the target of a link."""
_LINE: Final = re.compile(r"(?<=\.py)#L\d+(?=\))")
"""Matches the line in a link to code. A line that moves is no change of the prose."""
_LINK_TO_TRANSLATION: Final = re.compile(r"\[中文\]\([^)]*\)")
_HEADING: Final = re.compile(r"^(?=#+ )", re.MULTILINE)
_MARK: Final = re.compile(r"\n*^<!-- sections of (?P<page>\S+), as translated: (?P<digests>[0-9a-f ]*) -->\n\Z", re.MULTILINE)


class TranslationError(Exception):
    """Raised if a Chinese page does not end with a line of digests, or its code blocks differ from the English page."""


def translations() -> list[Path]:
    """Returns the paths of all Chinese pages."""
    return sorted([*ROOT.glob("docs/*.zh.md"), *ROOT.glob("tutorials/*/README.zh.md")])


def english_of(page: Path) -> Path:
    """Returns the path of the English page that `page` translates."""
    return page.with_name(page.name.removesuffix(".zh.md") + ".md")


def prose_of(text: str) -> str:
    """Returns a page's text without code blocks, the link to its translation, lines of links to code, and the line of digests."""
    return _MARK.sub("\n", _LINE.sub("", _LINK_TO_TRANSLATION.sub("", CODE.sub("", text))))


def sections_of(text: str) -> list[tuple[str, str]]:
    """Returns the heading of each section with a digest of the section's words. White space does not affect the digest."""
    found = []
    for section in _HEADING.split(prose_of(text)):
        words = " ".join(section.split())
        if words:
            found.append((section.splitlines()[0], hashlib.sha256(words.encode()).hexdigest()[:8]))
    return found


def changed_sections(page: Path) -> list[str]:
    """Returns the headings of the English sections that changed after the translation. Raises TranslationError."""
    mark = _MARK.search(page.read_text())
    if mark is None or mark["page"] != english_of(page).name:
        raise TranslationError(
            f"{page}: the last line has no digests of the English page: run python -m deploy.scripts.translations PAGE.md"
        )
    then, now = mark["digests"].split(), sections_of(english_of(page).read_text())
    changed = [heading for heading, digest in now if digest not in then]
    if not changed and [digest for _, digest in now] != then:
        return ["(sections were reordered or removed)"]
    return changed


def with_english_code(page: Path) -> str:
    """Returns the Chinese page's text with the code blocks of its English page. Raises TranslationError."""
    text, code = page.read_text(), CODE.findall(english_of(page).read_text())
    if (here := len(CODE.findall(text))) != len(code):
        raise TranslationError(f"{page} has {here} code blocks, but its English page has {len(code)}")
    blocks = iter(code)
    return CODE.sub(lambda _: next(blocks), text)


def with_chinese_links(page: Path) -> str:
    """Returns the Chinese page's text with links to Chinese pages where these exist."""

    def linked(link: re.Match[str]) -> str:
        target = page.parent / link["path"]
        english = english_of(target) if target.name.endswith(".zh.md") else target
        chinese = english.with_name(f"{english.stem}.zh.md")
        if english.suffix != ".md" or english == english_of(page):
            return link[0]
        name = chinese.name if chinese.exists() else english.name
        return f"{link['path'].removesuffix(target.name)}{name}{link['anchor'] or ''}"

    return LINK.sub(linked, page.read_text())


def as_translated_now(page: Path) -> str:
    """Returns the Chinese page's text with the English page's code blocks and current digests. Raises TranslationError."""
    digests = " ".join(digest for _, digest in sections_of(english_of(page).read_text()))
    text = _MARK.sub("", with_english_code(page)).rstrip("\n")
    return f"{text}\n\n<!-- sections of {english_of(page).name}, as translated: {digests} -->\n"


def main(names: Iterable[str]) -> None:
    """Updates the code blocks and links of all Chinese pages, and the digests of the pages `names`.

    Raises SystemExit with the reason if a page cannot be updated.
    """
    named = {(ROOT / name).resolve() for name in names}
    pages = {english_of(page): page for page in translations()}
    if unknown := named - pages.keys():
        raise SystemExit(f"translations: no Chinese page for {', '.join(map(str, sorted(unknown)))}")
    try:
        for english, page in pages.items():
            page.write_text(with_chinese_links(page))
            page.write_text(as_translated_now(page) if english in named else with_english_code(page))
    except TranslationError as error:
        raise SystemExit(f"translations: {error}") from None


if __name__ == "__main__":
    with until_interrupted():
        main(sys.argv[1:])
