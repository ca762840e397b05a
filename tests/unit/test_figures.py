"""The figures of the pages are those of the code: sizes, settings, limits, counts, versions, ratios and reading times.

A figure that was measured has its date on the page (test_each_measured_figure_says_when_it_was_measured) or comes from a record
file. Each other figure has a row here, or belongs to an example.
"""

import pkgutil
import re
import tomllib
from collections.abc import Iterator, Mapping, Sized
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from credit_service import settings as credits
from inventory_service import settings as inventory
from order_service import settings as orders
from rocketmq_broker.config import BrokerSettings
from service_runtime.settings.common import NamedSettings
from tests.foreign.pythons.test_other_pythons import DOWNLOADED
from tests.recipes import installed_by
from tests.unit.test_documentation import FENCE, FOLDERS, HISTORY, READMES, ROOT, files, name_of, pages, prose_of, text_of
from tutorials.race.faults import Fault

# Sizes

NEARLY = 0.05


def lines_of(*folders: str) -> int:
    """Returns the number of Python lines in folders, without the lines of their tests."""
    return sum(len(path.read_text().splitlines()) for folder in folders for path in _own_sources(folder))


def _own_sources(folder: str) -> Iterator[Path]:
    for path in files(ROOT / folder):
        if path.suffix == ".py" and (folder == "tests" or "tests" not in path.parts[len(ROOT.parts) :]):
            yield path


@pytest.mark.parametrize("readme", READMES)
def test_the_map_of_the_folders_says_how_large_each_part_is(readme: str) -> None:
    rows = re.findall(r"^\| (\[\w.*?) \| ?([\d,]*) \| ", text_of(ROOT / readme), re.MULTILINE)
    folders = [re.findall(r"\]\((\w+)\)", cell) for cell, _ in rows]
    assert {folder for row in folders for folder in row} == {
        path.name for path in FOLDERS if path.name[0] != "." and any(path.rglob("*.*"))
    }
    for row, (_, said) in zip(folders, rows, strict=True):
        if said:
            assert int(said.replace(",", "")) == pytest.approx(lines_of(*row), rel=NEARLY)


SERVICES = ("order_service", "credit_service", "inventory_service", "order_messages", "service_runtime")
CODE = (*SERVICES, "broker", "pipelines", "packages", "demo", "tutorials")
SOLUTION = "tutorials/build_your_own/solution"


@pytest.mark.parametrize(
    ("page", "pattern", "folders"),
    [
        ("docs/why-larger.md", r"The services have some ([\d,]+)\.", SERVICES),
        ("docs/tour.md", r"lines of this repository's ([\d,]+) \(without tests\)", CODE),
        ("tutorials/build_your_own/README.md", r"in plain Python has some ([\d,]+) lines", (SOLUTION,)),
    ],
)
def test_a_page_says_how_many_lines_a_part_has(page: str, pattern: str, folders: tuple[str, ...]) -> None:
    (said,) = re.findall(pattern, text_of(ROOT / page))
    assert int(said.replace(",", "")) == pytest.approx(lines_of(*folders), rel=NEARLY)


FORTY = 40


@pytest.mark.parametrize(
    "program", ["halfway/saga", "halfway/tcc", "halfway/xa", "halfway/message", "you-already-know-the-outbox/relay"]
)
def test_a_program_has_fewer_than_forty_lines(program: str) -> None:
    """Counts blank lines and imports as well."""
    assert len(text_of(ROOT / "tutorials" / f"{program}.py").splitlines()) < FORTY


def test_the_shop_in_forty_lines_has_no_more_that_are_written() -> None:
    lines = text_of(ROOT / "tutorials" / "forty-lines-of-your-own" / "shop.py").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= FORTY


@pytest.mark.parametrize("readme", READMES)
def test_a_reader_has_read_it_in_a_minute(readme: str) -> None:
    assert len(text_of(ROOT / readme).splitlines()) <= 120


# Packages


@pytest.mark.parametrize("readme", [*READMES, "broker/README.md"])
def test_it_says_how_many_packages_the_broker_brings(readme: str) -> None:
    said = re.findall(r"(\d+) (?:packages|个软件包)", text_of(ROOT / readme))
    assert said == [str(len(installed_by(["rocketmq-broker"]) - {"rocketmq-broker"}))]


# Minutes

WORDS_A_MINUTE = 130
LINES_OF_CODE_A_MINUTE = 20
COMMANDS_A_MINUTE = 4
TIME = re.compile(r"\*\*Time\*\*: (\d+) minutes")


def minutes_of(chapter: Path) -> float:
    """Returns an estimate of a chapter's reading time from its words, its lines of code and its commands."""
    text = text_of(chapter)
    words = len(re.findall(r"\w+", FENCE.sub("", text)))
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    code = sum(block.count("\n") for language, block in blocks if language in ("python", "diff"))
    commands = sum(language == "bash" for language, _ in blocks)
    return words / WORDS_A_MINUTE + code / LINES_OF_CODE_A_MINUTE + commands / COMMANDS_A_MINUTE


@cache
def chapters() -> dict[str, int]:
    """Returns the chapters with the minutes that they say they take."""
    found = ((page.parent.name, TIME.search(text_of(page))) for page in sorted((ROOT / "tutorials").glob("*-*/README.md")))
    return {name: int(time[1]) for name, time in found if time is not None}


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_takes_about_as_long_as_it_says(chapter: str) -> None:
    estimate = minutes_of(ROOT / "tutorials" / chapter / "README.md")
    assert 0.6 * estimate <= chapters()[chapter] <= 1.6 * estimate, f"some {estimate:.0f} minutes by its words and code"


@pytest.mark.parametrize("page", [*READMES, "docs/zh.md", "tutorials/README.md"])
def test_a_list_of_chapters_says_their_minutes(page: str) -> None:
    row = r"^\|.*\]\((?:\.\./)?(?:tutorials/)?([\w-]+)/README(?:\.zh)?\.md\).*\| (\d+)(?: minutes| 分钟)? \|$"
    said = {name: int(minutes) for name, minutes in re.findall(row, text_of(ROOT / page), re.MULTILINE) if name in chapters()}
    assert len(said) > 1
    assert said == {name: chapters()[name] for name in said}


def test_a_translated_chapter_takes_as_long() -> None:
    for page in (ROOT / "tutorials").glob("*/README.zh.md"):
        (said,) = re.findall(r"\*\*时间\*\*\W(\d+) 分钟", text_of(page))
        assert (page.parent.name, int(said)) == (page.parent.name, chapters()[page.parent.name])


def test_the_path_of_an_hour_takes_an_hour() -> None:
    path = re.findall(r"^\| \* \| .*\| (\d+) \|$", text_of(ROOT / "tutorials" / "README.md"), re.MULTILINE)
    assert 55 <= sum(map(int, path)) <= 65


# Settings


def rows_of(page: str) -> Iterator[tuple[str, str]]:
    """Yields each setting of a page's tables with the default that the page states."""
    for names, defaults in re.findall(
        r"^\| (`(?=\S*[A-Z])[\w.]+`(?:, `[\w.]+`)*) \| ([^|]+) \| [^|]+ \|$", text_of(ROOT / page), re.MULTILINE
    ):
        listed, stated = re.findall(r"`([\w.]+)`", names), defaults.split(", ")
        for name, default in zip(listed, stated * len(listed) if len(stated) == 1 else stated, strict=True):
            yield name, default.strip("`")


def wrong_defaults(stated: Mapping[str, str], defaults: Mapping[str, object]) -> dict[str, tuple[str, object]]:
    """Returns the settings whose stated default is not theirs. Compares numbers and switches, which are not computed."""
    numbers = {name: it for name, it in stated.items() if re.fullmatch(r"-?[\d.]+|true|false", it) and defaults[name] != ""}
    assert len(numbers) > 5
    return {name: (default, defaults[name]) for name, default in numbers.items() if default != _as_stated(defaults[name])}


def _as_stated(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:.15g}" if isinstance(default, float) else str(default)


def test_the_settings_of_the_broker_have_the_defaults_that_the_page_states() -> None:
    settings = BrokerSettings()
    fields = dict(zip(BrokerSettings.__struct_encode_fields__, BrokerSettings.__struct_fields__, strict=True))
    found = {name: default for name, default in rows_of("docs/operations.md") if name in fields}
    assert len(found) > 60
    assert wrong_defaults(found, {name: getattr(settings, field) for name, field in fields.items()}) == {}


@pytest.mark.parametrize(
    "settings", [orders.OrderSettings, credits.CreditSettings, credits.WorkerSettings, inventory.InventorySettings]
)
def test_the_settings_of_a_service_have_the_defaults_that_the_page_states(settings: type[NamedSettings]) -> None:
    defaults = {str(info.validation_alias): info.get_default() for info in settings.model_fields.values()}
    found = {name: default for name, default in rows_of("docs/services.md") if name in defaults}
    assert len(found) > 10
    assert wrong_defaults(found, defaults) == {}


# Sentences

FAULTS = len(Fault) - 1
"""The faults of the race, without the row in which nothing fails."""
CLAIMS = len(re.findall(r'^## "', text_of(ROOT / "tutorials" / "what-the-articles-get-wrong" / "README.md"), re.MULTILINE))

LOG_FILES = re.findall(r'max-(?:size|file): "?(\d+)', text_of(ROOT / "docker-compose.yml"))[:2]
"""The size in MB and the number of the files of a container's output."""

BROKER = tomllib.loads(text_of(ROOT / "broker" / "pyproject.toml"))["project"]
DIRECT = BROKER["dependencies"]
PYTHONS = [BROKER["requires-python"].removeprefix(">="), DOWNLOADED]
"""The oldest Python that pip accepts, and the newest one that tests run."""

FIGURES: list[tuple[str, str, list[str]]] = [
    (page, words, names)
    for page, rows in tomllib.loads((ROOT / "tests" / "unit" / "figures.toml").read_text()).items()
    for words, names in rows.items()
]
"""A page, its words with {} for each figure, and the names of the figures in the code."""
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_HAN = "零一二三四五六七八九"
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS.split())}


def value_of(name: str) -> str:
    """Returns a figure of the code, as the pages write it."""
    path, _, unit = name.partition("/")
    value: Any = _object_named(path)
    if isinstance(value, Sized) and not isinstance(value, str):
        value = len(value)
    return value if isinstance(value, str) else f"{float(value) / float(unit or 1):.10g}"


def _object_named(path: str) -> Any:
    name, *parts = re.split(r"\[|\]\.?", path.removesuffix("]"))
    if "." not in name:
        fields = dict(zip(BrokerSettings.__struct_encode_fields__, BrokerSettings.__struct_fields__, strict=True))
        return getattr(BrokerSettings(), fields[name])
    value = pkgutil.resolve_name(f"rocketmq_broker{name}" if name[0] == "." else name)
    for part in filter(None, parts):
        value = getattr(value, part) if part.isidentifier() else value[int(part) if part[-1].isdigit() else part]
    return value


def in_digits(text: str) -> str:
    """Returns a text on one line, with digits without commas for numbers, and for words such as "four"."""
    digits = re.sub(r"(?<=\d),(?=\d{3})", "", " ".join(text.split()))
    return re.sub(r"[A-Za-z]+", lambda word: _DIGITS.get(word[0].lower(), word[0]), digits)


@cache
def said(page: str) -> str:
    return in_digits(text_of(ROOT / page))


def in_han(digits: str) -> str:
    """Returns a number below twenty in Chinese, and other numbers in digits."""
    tens, ones = divmod(int(digits), 10) if digits.isdigit() else (2, 0)
    return f"{'十' * tens}{_HAN[ones] * (ones > 0)}" if tens < 2 else digits


@pytest.mark.parametrize(("page", "words", "names"), FIGURES)
def test_a_sentence_has_the_figures_of_the_code(page: str, words: str, names: list[str]) -> None:
    stated = [re.search(rf"(?<!\d){re.escape(sentence)}(?!\d)", said(page)) for sentence in sentences(words, names)]
    assert any(stated), f"{page} does not say: {sentences(words, names)}"


def sentences(words: str, names: list[str]) -> tuple[str, str]:
    """Returns a sentence with its figures, in digits and in Chinese."""
    figures = [value_of(name) for name in names]
    return in_digits(words.format(*figures)), words.format(*map(in_han, figures))


# Measurements

MEASURED = re.compile(
    r"\b(?:some|about|around|nearly|almost) \d|\d (?:MB|GB|µs|lines)\b|\d s of (?:CPU|a processor|processor time)"
    r"|大约 ?\d|处理器 \d+ 秒"
)
"""What a page writes of sizes and times that were measured, or that grow with the code."""
DATE = re.compile(r"\d{1,2} [A-Z][a-z]+ 20\d\d|20\d\d 年 \d{1,2} 月 \d{1,2} 日")
HELD_ABOVE = re.compile(r"some 1,700 lines|The services have some|in plain Python has some")
"""Sizes that other tests compare, the first one in tests/component/test_tour.py."""
DATED = {"docs/benchmarks.md", "docs/simulation-planted.md"}
"""Pages that are records of measurements."""


def paragraphs_of(page: Path) -> Iterator[str]:
    """Yields the paragraphs, items and rows of a page's prose, each on one line. Excludes commands."""
    prose = re.sub(r"^ {4}.*$", "", prose_of(page), flags=re.MULTILINE)
    yield from (" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=\s*[-|] )", prose))


def is_measured(paragraph: str, held: list[str]) -> bool:
    """Returns whether a paragraph has a measured figure, besides the sentences that are held to the code."""
    left = in_digits(paragraph)
    for sentence in held:
        left = left.replace(sentence, "")
    return bool(MEASURED.search(left) and MEASURED.search(paragraph))  # and not only "about two"


def test_each_measured_figure_says_when_it_was_measured() -> None:
    undated = []
    for page in pages():
        if not HISTORY.search(name_of(page)) and name_of(page) not in DATED:
            held = [sentence for other, *row in FIGURES if other == name_of(page) for sentence in sentences(*row)]
            found = [paragraph for paragraph in paragraphs_of(page) if is_measured(paragraph, held)]
            undated += [f"{name_of(page)}: {it}" for it in found if not DATE.search(it) and not HELD_ABOVE.search(it)]
    assert undated == []
