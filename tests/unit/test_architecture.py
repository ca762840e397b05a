"""Compares the pictures and tables of docs/architecture.md with the code."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROOMS_PICTURE, WAY_PICTURE = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]

Edges = Mapping[str, set[str]]


def arrows() -> Edges:
    """Returns the packages to which each package in `ROOMS_PICTURE` points."""
    drawn: dict[str, set[str]] = {name: set() for name in re.findall(r"^    (\S+)$", ROOMS_PICTURE, re.MULTILINE)}
    for begin, end in re.findall(r"^  (\S+) --> (\S+)$", ROOMS_PICTURE, re.MULTILINE):
        drawn[begin].add(end)
    return drawn


@cache
def imports() -> Edges:
    """Returns the imports of each module, including imports for types only."""
    graph = grimp.build_graph(*CONTRACTS["root_packages"])
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def room_of(module: str, rooms: Edges) -> str | None:
    return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)


def imports_between(rooms: Edges) -> Edges:
    """Returns the actual imports between the packages of the picture."""
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module, names in imports().items():
        importer = room_of(module, rooms)
        imported = {room_of(name, rooms) for name in names}
        if importer is not None:
            found[importer] |= {room for room in imported if room not in (None, importer)}
    return found


def reached_from(room: str, edges: Edges) -> set[str]:
    reached: set[str] = set()
    left = [room]
    while left:
        new = edges[left.pop()] - reached
        reached |= new
        left += new
    return reached


def test_no_modules_import_one_another_in_a_circle() -> None:
    TopologicalSorter(imports()).prepare()  # CycleError names the circle


def test_the_picture_of_the_rooms_shows_every_package() -> None:
    packages = {name for name in CONTRACTS["root_packages"] if name != "rocketmq_broker"}
    packages |= {f"rocketmq_broker.{path.parent.name}" for path in (ROOT / "broker" / "rocketmq_broker").glob("*/__init__.py")}
    assert set(arrows()) == packages


def test_each_arrow_between_rooms_is_an_import_that_occurs() -> None:
    drawn = arrows()
    found = imports_between(drawn)
    assert {room: ends - found[room] for room, ends in drawn.items() if ends - found[room]} == {}


def test_each_import_between_rooms_follows_the_arrows() -> None:
    drawn = arrows()
    found = imports_between(drawn)
    against = {room: found[room] - reached_from(room, drawn) for room in drawn}
    assert {room: ends for room, ends in against.items() if ends} == {}


def test_the_arrows_between_rooms_go_round_in_no_circle() -> None:
    drawn = arrows()
    assert [room for room in drawn if room in reached_from(room, drawn)] == []


def rows_of_rooms() -> Iterator[tuple[str, list[set[str]]]]:
    for package, cells in re.findall(r"^\| \[\S+\]\(\.\./(\S+?)\) \| (.*?) \|$", PAGE, re.MULTILINE):
        yield (
            package.removeprefix("broker/").replace("/", "."),
            [set(cell.replace("\\", "").split(", ")) for cell in cells.split(" · ")],
        )


@pytest.mark.parametrize(("package", "rooms"), list(rows_of_rooms()), ids=lambda value: value if isinstance(value, str) else "")
def test_the_table_lists_the_rooms_of_a_package_in_the_order_of_its_contract(package: str, rooms: list[set[str]]) -> None:
    layers = next(contract["layers"] for contract in CONTRACTS["contracts"] if contract.get("containers") == [package])
    assert rooms == [set(re.split(r" [|:] ", layer)) for layer in layers]


def test_the_table_lists_each_package_whose_rooms_have_a_contract() -> None:
    assert {package for package, _ in rows_of_rooms()} == {
        container for contract in CONTRACTS["contracts"] for container in contract.get("containers", ())
    }


MAX_MODULES = 16
PARENTS = {
    "rocketmq_broker": ROOT / "broker",
    "rocketmq_commitlog": ROOT / "packages" / "commitlog",
    "faststream_rocketmq": ROOT / "packages" / "faststream-rocketmq",
}


def test_no_folder_holds_more_modules_than_one_can_take_in_at_a_glance() -> None:
    packages = [PARENTS.get(name, ROOT) / name for name in (*CONTRACTS["root_packages"], "tutorials")]
    modules = Counter(path.parent for package in packages for path in package.rglob("*.py"))
    assert {str(folder.relative_to(ROOT)) for folder, count in modules.items() if count > MAX_MODULES} == set()


def test_a_class_name_stands_for_one_thing() -> None:
    """A search for a name finds one class. A second class gets another noun, as in TransactionStep and RepairStep."""
    folders = [PARENTS.get(name, ROOT) / name for name in CONTRACTS["root_packages"]]
    files = [path for folder in folders for path in folder.rglob("*.py") if "benchmarks" not in path.parts]
    names = Counter(it.name for path in files for it in parsed(path).body if isinstance(it, ast.ClassDef))
    same_in_two_libraries = {"Inbox", "Migration"}  # Inbox is for SQLAlchemy or Django; Migration is Django's name
    assert [name for name, count in names.items() if count > 1 and name not in same_in_two_libraries] == []


def test_each_step_of_the_message_s_way_has_its_place_in_the_code() -> None:
    drawn = {int(number) for number in re.findall(r": (\d+)\. ", WAY_PICTURE)}
    explained = {int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert drawn == explained == set(range(1, max(drawn) + 1))
