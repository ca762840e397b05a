"""Keeps a Chinese page true to its English page: PAGE.zh.md stands beside PAGE.md.

Its code blocks are the English ones, and its links lead to Chinese pages where there are any. Its last line has a digest of the
prose of each English section, as it was when somebody translated it. `python -m deploy.scripts.translations` brings code blocks
and links up to date. `python -m deploy.scripts.translations PAGE.md` also renews the digests of this page: it says that the
translation has what the English page says now.
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
"""A code block, with the comment above it that names its file."""
LINK: Final = re.compile(r"(?<=\]\()(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
"""The target of a link."""
_LINK_TO_TRANSLATION: Final = re.compile(r"\[中文\]\([^)]*\)")
_HEADING: Final = re.compile(r"^(?=#+ )", re.MULTILINE)
_MARK: Final = re.compile(r"\n*^<!-- sections of (?P<page>\S+), as translated: (?P<digests>[0-9a-f ]*) -->\n\Z", re.MULTILINE)


class TranslationError(Exception):
    """A translation lacks its English page, its last line, or one of the code blocks."""


def translations() -> list[Path]:
    """Returns the Chinese pages that have an English page of their own."""
    return sorted([*ROOT.glob("docs/*.zh.md"), *ROOT.glob("tutorials/*/README.zh.md")])


def english_of(page: Path) -> Path:
    """Returns the page of which `page` is the translation."""
    return page.with_name(page.name.removesuffix(".zh.md") + ".md")


def prose_of(text: str) -> str:
    """Returns a page's text without code blocks, the link to its translation, and the last line of a translation."""
    return _MARK.sub("\n", _LINK_TO_TRANSLATION.sub("", CODE.sub("", text)))


def sections_of(text: str) -> list[tuple[str, str]]:
    """Returns each section's heading, and a digest of its words. Space and line breaks do not count."""
    found = []
    for section in _HEADING.split(prose_of(text)):
        words = " ".join(section.split())
        if words:
            found.append((section.splitlines()[0], hashlib.sha256(words.encode()).hexdigest()[:8]))
    return found


def changed_sections(page: Path) -> list[str]:
    """Returns the headings of the English page whose sections changed after the translation. Raises TranslationError."""
    mark = _MARK.search(page.read_text())
    if mark is None or mark["page"] != english_of(page).name:
        raise TranslationError(
            f"{page}: its last line does not say what was translated: python -m deploy.scripts.translations PAGE.md writes it"
        )
    then, now = mark["digests"].split(), sections_of(english_of(page).read_text())
    changed = [heading for heading, digest in now if digest not in then]
    if not changed and [digest for _, digest in now] != then:
        return ["(its sections have another order, or one is gone)"]
    return changed


def with_english_code(page: Path) -> str:
    """Returns the translation's text with the code blocks of its English page, in their order. Raises TranslationError."""
    text, code = page.read_text(), CODE.findall(english_of(page).read_text())
    if (here := len(CODE.findall(text))) != len(code):
        raise TranslationError(f"{page} has {here} code blocks, and its English page has {len(code)}")
    blocks = iter(code)
    return CODE.sub(lambda _: next(blocks), text)


def with_chinese_links(page: Path) -> str:
    """Returns the translation's text, whose links lead to a page's translation if there is one, and to the page itself if not."""

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
    """Returns the translation's text with the code and the digests of the English page. Raises TranslationError."""
    digests = " ".join(digest for _, digest in sections_of(english_of(page).read_text()))
    text = _MARK.sub("", with_english_code(page)).rstrip("\n")
    return f"{text}\n\n<!-- sections of {english_of(page).name}, as translated: {digests} -->\n"


def main(names: Iterable[str]) -> None:
    """Brings code blocks and links up to date, and renews the digests of the pages that are named.

    Raises SystemExit with the reason.
    """
    named = {(ROOT / name).resolve() for name in names}
    pages = {english_of(page): page for page in translations()}
    if unknown := named - pages.keys():
        raise SystemExit(f"translations: no Chinese page stands beside {', '.join(map(str, sorted(unknown)))}")
    try:
        for english, page in pages.items():
            page.write_text(with_chinese_links(page))
            page.write_text(as_translated_now(page) if english in named else with_english_code(page))
    except TranslationError as error:
        raise SystemExit(f"translations: {error}") from None


if __name__ == "__main__":
    with until_interrupted():
        main(sys.argv[1:])
