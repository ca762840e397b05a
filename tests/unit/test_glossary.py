"""docs/glossary.md: each word has its Chinese, is explained once, and is where the glossary says in the code."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text()
PLACES = re.findall(r"\[`(\w+)`\]\(\.\./([^)]+\.py)\)", PAGE)
ROWS = re.findall(r"^\| \*\*([^*]+)\*\*.*? \| (.*?) \| ", PAGE, re.MULTILINE)
WANTED = ["半消息", "事务回查", "本地消息表", "幂等", "屏障", "悬挂", "死信", "重新投递", "消费位点", "刷盘"]


@pytest.mark.parametrize(("name", "path"), PLACES)
def test_a_word_is_where_the_glossary_says(name: str, path: str) -> None:
    names = {getattr(node, "name", None) for node in parsed(ROOT / path).body}
    assert name in names


def test_each_word_is_explained_once() -> None:
    assert [word for word, count in Counter(word for word, _ in ROWS).items() if count > 1] == []


def test_each_word_has_its_chinese() -> None:
    assert len(ROWS) > 90
    assert [word for word, chinese in ROWS if not re.search(r"[\u4e00-\u9fff]", chinese)] == []
    assert [word for word in WANTED if word not in PAGE] == []
