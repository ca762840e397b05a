"""Chapters show the code that is tested, and each chapter has the required parts."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tutorials.pages import FOLDER, PageError, chapters, with_code

INDEX = (FOLDER / "README.md").read_text()
SECTIONS = ("## By hand", "## Cause", "## Exercise", "## Trade-offs", "## What next")
BASH = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.parent.name)
def test_a_page_shows_the_code_that_is_tested(page: Path) -> None:
    assert page.read_text() == with_code(page), "write it again: python -m tutorials.pages"


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.parent.name)
def test_a_page_says_its_level_its_minutes_and_its_goals_and_has_every_section(page: Path) -> None:
    text = page.read_text()
    assert re.match(
        r"# .+\n\n(\[中文\]\(README\.zh\.md\)\n\n)?\*\*Level\*\*: .+ · \*\*Time\*\*: \d+ minutes\n\n\*\*You learn\*\*:? ", text
    )
    assert [section for section in SECTIONS if f"\n{section}" not in text] == []


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.parent.name)
def test_the_index_has_the_chapter_once_with_its_minutes(page: Path) -> None:
    minutes = re.search(r"\*\*Time\*\*: (\d+) minutes", page.read_text())
    assert minutes is not None
    rows = re.findall(rf"\]\({re.escape(page.parent.name)}/README\.md\).*\| (\d+) \|", INDEX)
    assert rows == [minutes[1]]


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.parent.name)
def test_a_page_makes_the_folder_before_it_writes_there(page: Path) -> None:
    lines = [line for block in BASH.findall(page.read_text()) for line in block.splitlines() if "data/tutorial" in line]
    assert [line for line in lines if not line.startswith("rm -rf")][:1] == [
        line for line in lines if line.startswith("mkdir -p")
    ][:1]


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.parent.name)
def test_a_page_reads_all_that_curl_brings(page: Path) -> None:
    lines = [line for block in BASH.findall(page.read_text()) for line in block.splitlines() if "curl" in line]
    assert [line for line in lines if re.search(r"grep -m|head -", line)] == []  # curl would say "Failed writing body" at times


@pytest.mark.parametrize("page", chapters(), ids=lambda page: page.parent.name)
def test_a_page_removes_what_is_its_own_and_nothing_of_other_pages(page: Path) -> None:
    assert re.findall(r"rm -\S+ data/tutorial$", page.read_text(), re.MULTILINE) == []


def test_the_first_page_that_a_page_leads_to_next_is_the_next_one_of_the_index() -> None:
    order = re.findall(r"\]\(([\w-]+)/README\.md\)", INDEX)
    nexts = {
        page.parent.name: re.findall(r"\.\./([\w-]+)/README\.md", page.read_text().split("\n## What next\n")[1])[0]
        for page in chapters()
    }
    assert nexts == dict(pairwise(order))


def test_the_sixty_minute_path_takes_sixty_minutes_at_most() -> None:
    minutes = [int(found) for found in re.findall(r"\| \* \|.*\| (\d+) \|", INDEX)]
    assert 30 <= sum(minutes) <= 60


def test_the_introduction_in_chinese_has_the_same_path_and_minutes() -> None:
    path = re.findall(r"\| \* \| \[.*?\]\((\S+)\).*\| (\d+) \|", INDEX)
    chinese = (FOLDER.parent / "docs" / "zh.md").read_text().replace("/README.zh.md)", "/README.md)")
    assert re.findall(r"\]\(\.\./tutorials/(\S+)\) \|.*\| (\d+) \|", chinese) == path


def test_a_page_that_names_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("<!-- shop.py -->\n```python\n```\n")
    with pytest.raises(PageError, match=r"no file shop\.py"):
        with_code(page)
    (tmp_path / "shop.py").write_text("x = 1\n")
    page.write_text("<!-- shop.py sell -->\n```python\n```\n")
    with pytest.raises(PageError, match="does not define sell"):
        with_code(page)


def test_a_block_is_the_whole_file_or_what_it_calls_by_a_name(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text('@sold\ndef sell() -> None:\n    """Sells."""\n\n\nx = 1\n')
    page = tmp_path / "README.md"
    page.write_text("<!-- shop.py sell -->\n```python\nold\n```\n")
    assert with_code(page) == '<!-- shop.py sell -->\n```python\n@sold\ndef sell() -> None:\n    """Sells."""\n```\n'


def test_a_patch_is_shown_as_a_whole(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("<!-- late.patch -->\n```diff\nold\n```\n")
    (tmp_path / "late.patch").write_text("-x = 1\n+x = 2\n")
    assert with_code(page) == "<!-- late.patch -->\n```diff\n-x = 1\n+x = 2\n```\n"
