"""Each Chinese page matches its current English page, with the same code and names."""

import re
from pathlib import Path

import pytest

from deploy.scripts.translations import (
    CODE,
    LINK,
    ROOT,
    TranslationError,
    as_translated_now,
    changed_sections,
    english_of,
    prose_of,
    translations,
    with_chinese_links,
    with_english_code,
)

each_page = pytest.mark.parametrize("page", translations(), ids=lambda page: str(page.relative_to(ROOT)))


def name_of(page: Path) -> str:
    return str(english_of(page).relative_to(ROOT))


def links_of(page: Path) -> list[re.Match[str]]:
    return [link for link in LINK.finditer(CODE.sub("", page.read_text())) if "://" not in link["path"]]


@each_page
def test_the_english_page_has_not_changed_after_its_translation(page: Path) -> None:
    name = name_of(page)
    assert changed_sections(page) == [], f"translate what changed in {name}, then: python -m deploy.scripts.translations {name}"


@each_page
def test_the_code_is_that_of_the_english_page(page: Path) -> None:
    assert page.read_text() == with_english_code(page), "copy it: python -m deploy.scripts.translations"


@each_page
def test_each_link_leads_to_the_chinese_page_if_there_is_one(page: Path) -> None:
    assert page.read_text() == with_chinese_links(page), "mend them: python -m deploy.scripts.translations"


@each_page
def test_it_links_to_what_the_english_page_links_to(page: Path) -> None:
    def targets(of: Path) -> set[str]:
        other = english_of(page) if of == page else page
        links = [link for link in links_of(of) if link["path"] != other.name]
        return {f"{link['path'].replace('.zh.md', '.md')}{link['anchor'] or ''}" for link in links}

    assert targets(page) == targets(english_of(page))


@each_page
def test_each_page_links_to_the_other(page: Path) -> None:
    assert f"[English]({english_of(page).name})" in page.read_text()
    assert f"[中文]({page.name})" in english_of(page).read_text()


@each_page
def test_it_has_the_headings_tables_lists_and_names_of_the_english_page(page: Path) -> None:
    def shape(of: Path) -> list[str]:
        return re.findall(r"^(#+|\||-|\d\.) ", prose_of(of.read_text()).replace("|---", "| ---"), re.MULTILINE)

    def names(of: Path) -> set[str]:
        return set(re.findall(r"`[^`\n]+`", prose_of(of.read_text())))

    assert shape(page) == shape(english_of(page))
    assert names(page) == names(english_of(page))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    english = tmp_path / "page.md"
    english.write_text(
        "# One\n\n[中文](page.zh.md)\n\nFirst.\n\n## Two\n\nSecond\nthing.\n\n<!-- a.py -->\n```python\nx = 1\n```\n"
    )
    chinese = tmp_path / "page.zh.md"
    chinese.write_text("# 一\n\n[English](page.md)\n\n第一。\n\n## 二\n\n第二。[下一页](next.md#end)\n\n```\n```\n")
    chinese.write_text(as_translated_now(chinese))
    return chinese


def change(page: Path, old: str, new: str) -> None:
    assert old in page.read_text()
    page.write_text(page.read_text().replace(old, new))


def test_a_section_that_changed_after_its_translation_is_named_until_it_is_translated(page: Path) -> None:
    assert changed_sections(page) == []
    change(english_of(page), "Second", "Another")
    assert changed_sections(page) == ["## Two"]
    page.write_text(as_translated_now(page))
    assert changed_sections(page) == []


def test_space_line_breaks_and_code_of_the_english_page_may_change(page: Path) -> None:
    change(english_of(page), "Second\nthing.", "Second thing.  \n")
    change(english_of(page), "x = 1", "x = 2")
    assert changed_sections(page) == []


def test_a_line_of_code_that_moved_is_no_change_and_another_file_is(page: Path) -> None:
    change(english_of(page), "First.", "First: [`x`](../a.py#L1).")
    page.write_text(as_translated_now(page))
    change(english_of(page), "a.py#L1)", "a.py#L2)")
    assert changed_sections(page) == []
    change(english_of(page), "a.py#L2)", "b.py#L2)")
    assert changed_sections(page) == ["# One"]


def test_a_section_that_is_gone_is_a_change(page: Path) -> None:
    english = english_of(page)
    english.write_text(english.read_text().partition("## Two")[0])
    assert changed_sections(page) == ["(sections were reordered or removed)"]


def test_code_that_changed_is_copied_with_the_name_of_its_file(page: Path) -> None:
    assert "<!-- a.py -->\n```python\nx = 1\n```\n" in page.read_text()
    change(english_of(page), "x = 1", "x = 2")
    assert with_english_code(page) == page.read_text().replace("x = 1", "x = 2")


def test_a_page_without_one_of_the_blocks_is_an_error(page: Path) -> None:
    change(english_of(page), "x = 1\n```", "x = 1\n```\n\n```text\n1\n```")
    with pytest.raises(TranslationError, match="has 1 code blocks, but its English page has 2"):
        with_english_code(page)


def test_a_page_that_does_not_say_what_was_translated_is_an_error(page: Path) -> None:
    change(page, "sections of page.md", "sections of another.md")
    with pytest.raises(TranslationError, match="has no digests of the English page"):
        changed_sections(page)


def test_a_link_goes_to_the_translation_as_soon_as_there_is_one(page: Path) -> None:
    assert "(next.md#end)" in with_chinese_links(page)
    page.with_name("next.zh.md").touch()
    assert "(next.zh.md#end)" in with_chinese_links(page)
    assert "[English](page.md)" in with_chinese_links(page)
