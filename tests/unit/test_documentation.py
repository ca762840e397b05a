"""Checks Markdown pages: links have targets, names exist, lines fit, and some words are not used.

Apart from these words, no test checks the wording.
"""

import ast
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from credit_service import settings as credits
from inventory_service import settings as inventory
from order_service import settings as orders
from rocketmq_broker.config import BrokerSettings
from service_runtime.settings.common import NamedSettings
from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
IGNORED = {"build", "data", "dist", "htmlcov", "node_modules", "spark-warehouse", "target", "__pycache__"}
"""Folders that git ignores."""
FOLDERS = sorted(
    path
    for path in ROOT.iterdir()
    if path.is_dir() and path.name not in IGNORED and (path.name[0] != "." or path.name in {".github", ".ci"})
)
CODE = {
    ".cfg",
    ".css",
    ".go",
    ".html",
    ".ini",
    ".j2",
    ".java",
    ".js",
    ".json",
    ".py",
    ".rs",
    ".sh",
    ".sql",
    ".toml",
    ".xml",
    ".yml",
    "",
}
"""How the names of files end that hold code, or what a program reads."""
READMES = ("README.md", "README.zh.md")
MAX_COLUMNS = 130
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$\n?", re.DOTALL | re.MULTILINE)


def files(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder that git tracks or could track. Excludes ignored folders and symbolic links."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir():
            if path.name not in IGNORED and not path.name.endswith(".egg-info") and path.name[0] != ".":
                yield from files(path)
        else:
            yield path


@cache
def tree() -> tuple[Path, ...]:
    at_the_root = [path for path in sorted(ROOT.iterdir()) if path.is_file() and not path.is_symlink()]
    return (*at_the_root, *(path for folder in FOLDERS for path in files(folder)))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def pages() -> tuple[Path, ...]:
    """Returns the pages of this project. Excludes those of test data, which others wrote."""
    return tuple(path for path in tree() if path.suffix == ".md" and path.parts[-2] not in {"frames"})


@cache
def prose_of(page: Path) -> str:
    """Returns a page without its code blocks."""
    return FENCE.sub("", text_of(page))


# Links


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Returns the anchors of a page: GitHub's anchors of its headings, and its HTML anchors."""
    found = Counter[str]()
    anchors = set(re.findall(r'<a id="([^"]+)">', text_of(page)))
    for heading in re.findall(r"^ {0,3}#+ +(.+?) *$", prose_of(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{found[anchor]}" if found[anchor] else anchor)
        found[anchor] += 1
    return frozenset(anchors)


@cache
def links_of(page: Path) -> tuple[tuple[str, str], ...]:
    """Returns text and target of each link and picture of a page that points into the repository."""
    prose = re.sub(r"`[^`\n]+`", lambda span: "" if "](" in span[0] else span[0], prose_of(page))
    found = re.findall(r"\[([^\]]*)\]\(([^)\s]+)(?:\s[^)]*)?\)", prose)
    found += [("", target) for target in re.findall(r'(?:src|href)="([^"]+)"', prose)]
    return tuple((text, target) for text, target in found if not re.match(r"\w+:", target))


def test_each_link_leads_to_a_file_or_folder_and_to_an_anchor_of_it() -> None:
    broken = []
    for page in pages():
        for _, target in links_of(page):
            path, _, anchor = target.partition("#")
            place = (page.parent / path).resolve() if path else page
            if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors_of(place)):
                broken.append(f"{name_of(page)}: {target}")
    assert broken == []
    assert sum(len(links_of(page)) for page in pages()) > 800


def test_the_index_of_the_decisions_has_each_with_its_title() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = dict(re.findall(r"^- \[\d{4}\]\((\S+)\) (.*)$", text_of(folder / "README.md"), re.MULTILINE))
    titles = {path.name: text_of(path).splitlines()[0] for path in folder.glob("0*.md") if not path.name.startswith("0000")}
    assert listed.keys() == titles.keys()
    assert [name for name, title in listed.items() if title not in titles[name]] == []


def test_both_readmes_show_the_path_of_an_hour() -> None:
    path = re.findall(r"^\| \* \| \[[^]]*\]\(([^)]+)\)", text_of(ROOT / "tutorials" / "README.md"), re.MULTILINE)
    chinese = text_of(ROOT / "README.zh.md").replace("/README.zh.md)", "/README.md)")
    assert path
    assert re.findall(r"^\| \[[^]]*\]\(tutorials/([^)]+)\)", chinese, re.MULTILINE) == path


# Names

OF_OTHERS = """
--build-arg --force-recreate --ignore-scripts --install-completion --manifest-path 100/minute __transactionId__ COMPOSE_FILE
da8271b5 DbContext Depends DOCKER_HOST epoll_wait GenericContainer github.com/apache/rocketmq-clients/golang/v5
haMaxTimeSlaveNotCatchup ILLEGAL_POLLING_TIME livenessProbe manylinux_2_17_x86_64 metricCollectorMode pread64 pwrite64
readinessProbe recvfrom
spark.blockManager.port spark.eventLog startupProbe strace terminationGracePeriodSeconds test/start-rocketmq.sh
TransactionalMessageBridge.putHalfMessage TransactionalMessageBridge.putOpMessage Trigger.AvailableNow updatetopic
"""
"""Names, options and paths of other people's programs, and what only looks like one."""
WRITTEN = re.compile(r"(build|data|commitlog|consumequeue|conf|\.reconciliation|deploy/docker/secrets)/")
"""Folders into which programs write, and the broker's settings folder."""
HISTORY = re.compile(r"docs/decisions/|CHANGELOG\.md")
"""Pages that say what was once: their names may be gone."""


def spans() -> Iterator[tuple[Path, str]]:
    """Yields each text between backticks in prose, with its page."""
    for page in pages():
        if not HISTORY.search(name_of(page)):
            for span in re.findall(r"`([^`\n]+)`", prose_of(page)):
                yield page, span


@cache
def words() -> frozenset[str]:
    """Returns each word of the repository's files except pages, and the names of the files."""
    found: set[str] = set()
    for path in tree():
        found |= {path.name, path.stem}
        if path.suffix in CODE and path.name != "LICENSE":
            found.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="ignore")))
    return frozenset(found)


def is_named_in_the_code(name: str) -> bool:
    """Returns whether the code has the name, or the field that becomes an option, a variable or a JSON name."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace("-", "_").lower()
    without_service = re.sub(r"^(order|credit|inventory)_", "", snake)
    counter = without_service.removesuffix("_total")
    return not words().isdisjoint({name, snake, without_service, counter, f"_{counter}"})


def test_each_option_that_a_page_names_exists() -> None:
    named = {(option, name_of(page)) for page, span in spans() for option in re.findall(r"(?<![\w-])--([a-z][\w-]+)", span)}
    assert len(named) > 100
    assert sorted(it for it in named if f"--{it[0]}" not in OF_OTHERS.split() and not is_named_in_the_code(it[0])) == []


def test_each_name_of_code_that_a_page_names_exists() -> None:
    named = {(span, name_of(page)) for page, span in spans() if re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", span)}
    assert len(named) > 1000
    unknown = {it for it in named if not all(is_named_in_the_code(word) for word in re.findall(r"\w+", it[0]))}
    assert sorted(it for it in unknown if it[0] not in OF_OTHERS.split()) == []


def test_each_path_that_a_page_names_exists() -> None:
    named = {(span, page) for page, span in spans() if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", span)}
    assert len(named) > 50
    unknown = {
        (span, name_of(page))
        for span, page in named
        if not any(
            (folder / span).exists() for folder in (ROOT, page.parent, ROOT / "broker", ROOT / "broker" / "rocketmq_broker")
        )
    }
    assert sorted(it for it in unknown if it[0] not in OF_OTHERS.split() and not WRITTEN.match(it[0])) == []


def test_each_module_that_a_page_runs_exists() -> None:
    named = {
        name for page in pages() for name in re.findall(r"python -m ([\w.]+)", text_of(page)) if not HISTORY.search(name_of(page))
    }
    ours = [name for name in named if name.split(".")[0] in {path.name for path in (*FOLDERS, *(ROOT / "broker").iterdir())}]
    places = {name: ROOT / ("broker" if name.startswith("rocketmq_broker") else "") / name.replace(".", "/") for name in ours}
    assert len(ours) > 10
    assert [
        it for it, place in places.items() if not (place.with_suffix(".py").exists() or (place / "__main__.py").exists())
    ] == []


def test_each_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    current = [page for page in pages() if not HISTORY.search(name_of(page))]
    named = {it for page in current for it in re.findall(r"(?:`|^ {4}|^)make ([a-z-]+)(?=[`\s])", text_of(page), re.MULTILINE)}
    assert len(named) > 10
    assert named - targets == set()


def names_in(path: Path) -> set[str]:
    """Returns a module's functions, classes and constants, and its methods as CLASS.METHOD."""
    names = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef):
            methods = [found.name for found in node.body if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)]
            names |= {node.name, *(f"{node.name}.{method}" for method in methods)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_a_name_that_links_to_a_module_stands_in_it() -> None:
    named = [
        (page, text.strip("`"), (page.parent / target).resolve())
        for page in pages()
        for text, target in links_of(page)
        if target.endswith(".py") and re.fullmatch(r"`\w+(\.\w+)?`", text)
    ]
    assert len(named) >= 40
    modules = {path.name for path in tree()}
    assert [
        (name_of(page), name) for page, name, path in named if f"{name}.py" not in modules and name not in names_in(path)
    ] == []


def commands(readme: str) -> list[str]:
    """Returns the commands in the indented blocks, without their comments."""
    lines = re.findall(r"^ {4}(make \S+|pip install \S+|rocketmq-broker)", text_of(ROOT / readme), re.MULTILINE)
    return [" ".join(line.split()) for line in lines]


def test_the_chinese_readme_names_no_other_commands_than_the_english_one() -> None:
    assert set(commands("README.zh.md")) <= set(commands("README.md"))
    assert len(commands("README.zh.md")) > 4


@pytest.mark.parametrize(
    "settings", [orders.OrderSettings, credits.CreditSettings, credits.WorkerSettings, inventory.InventorySettings]
)
def test_each_setting_of_a_service_is_explained(settings: type[NamedSettings]) -> None:
    names = [str(info.validation_alias) for info in settings.model_fields.values()]
    assert [name for name in names if f"`{name}`" not in text_of(ROOT / "docs" / "services.md")] == []


def test_each_setting_of_the_broker_is_explained() -> None:
    names = list(BrokerSettings.__struct_encode_fields__)
    assert [name for name in names if f"`{name}`" not in text_of(ROOT / "docs" / "operations.md")] == []


# Messages of docs/troubleshooting.md

ANYTHING = "…"
DIRECTIVE = re.compile(r"%(?:\.\d+)?[sdrgof]")
EXPLAINED = ("broker", "order_service", "credit_service", "service_runtime")
MESSAGES = re.findall(r"^\| `(.+?)` \|", text_of(ROOT / "docs" / "troubleshooting.md"), re.MULTILINE)


@cache
def texts() -> frozenset[str]:
    """Returns all strings in the code, with … for each inserted value."""
    return frozenset(text for package in EXPLAINED for path in (ROOT / package).rglob("*.py") for text in strings(parsed(path)))


def strings(module: ast.AST) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield DIRECTIVE.sub(ANYTHING, node.value)
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else ANYTHING for part in node.values)


def stands_in_the_code(message: str) -> bool:
    parts = message.split(ANYTHING)
    pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
    return any(pattern.search(text) for text in texts() if max(parts, key=len) in text)


def test_each_message_that_is_explained_stands_in_the_code() -> None:
    assert len(MESSAGES) > 50
    assert len(MESSAGES) == len(set(MESSAGES))
    assert not stands_in_the_code("no broker has the topic …")
    assert [message for message in MESSAGES if not stands_in_the_code(message)] == []


# Words

NOT_WORDS = re.compile(r"\b(an[e]w|whoev[e]r)\b", re.IGNORECASE)
"""Archaic words: again, and anyone who or each client that, take their place."""
NOT_BOUNDS = re.compile(r"(?<![A-Za-z_])_*(MOST|LONGEST|FEWEST|SHORTEST)_[A-Z]")
"""Names of bounds begin with MAX_ or MIN_."""
TEXTS = {*CODE, ".md"}


def unreleased(changelog: str) -> str:
    """Returns the unreleased section, since the notes of a release are not changed."""
    return changelog.partition("## [Unreleased]")[2].partition("\n## [")[0]


def lines_to_read() -> Iterator[tuple[Path, str]]:
    """Yields the lines of all texts in the repository except the Chinese ones."""
    for path in tree():
        if path.suffix in TEXTS and path.name != "LICENSE" and not path.name.endswith(".zh.md"):
            text = path.read_text(encoding="utf-8", errors="ignore")
            for line in (unreleased(text) if path.name == "CHANGELOG.md" else text).splitlines():
                yield path, line


def test_no_text_has_an_archaic_word_and_no_bound_an_odd_name() -> None:
    found = [
        f"{name_of(path)}: {line.strip()}" for path, line in lines_to_read() if NOT_WORDS.search(line) or NOT_BOUNDS.search(line)
    ]
    assert found == []


# Lines


def columns(line: str) -> int:
    """Returns the width of a line. A Chinese character takes two columns."""
    return len(line) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in line)


def is_too_long(line: str) -> bool:
    """Returns whether a line is too long and can be broken. Tables, headings, HTML, link definitions and indented code cannot."""
    if columns(line) <= MAX_COLUMNS or re.match(r" *(\||#|<|\[[^\]]+\]: )| {4}", line):
        return False
    one_word = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", "", line.lstrip(" -*>"))
    return bool(re.search(r"\s|[\u4e00-\u9fff]", one_word))


def test_lines_of_prose_fit() -> None:
    """Only text that cannot be broken may be longer, such as a link with its target, or code."""
    assert [f"{name_of(page)}: {line}" for page in pages() for line in prose_of(page).splitlines() if is_too_long(line)] == []
