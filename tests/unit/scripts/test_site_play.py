"""Tests the files that the page docs/play loads: wheels of the locked versions, and the modules that the page uses."""

import zipfile
from pathlib import Path

from deploy.scripts.site_play import LOCK, WHEELS, moved_wheels, pack, stage_modules, used_files


def test_the_wheels_of_the_page_have_the_versions_of_the_lock() -> None:
    assert moved_wheels(LOCK.read_text()) == []


def test_a_version_that_moved_is_named_with_the_wheel_that_is_missing() -> None:
    lock = "".join(f"{pinned.name}=={pinned.version}\n" for pinned in WHEELS).replace("msgspec==0.22.0", "msgspec==0.23.0")
    [sentence] = moved_wheels(lock)
    assert sentence.startswith("msgspec is 0.23.0 in requirements.lock: docs/play needs its wheel for pyemscripten_2026_0_wasm32")


def test_what_was_read_of_checkout_and_packages_is_used_and_nothing_else(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("wheels", "sources")]
    for file in (
        "wheels/msgspec/core.so",
        "sources/shop/__init__.py",
        "sources/shop/page.html",
        "sources/shop-1.dist-info/METADATA",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    read = [
        "/0/msgspec/core.so",
        "/1/shop/__init__.py",
        "/1/shop/page.html",
        "/1/shop/none.html",
        "/1/shop-1.dist-info/METADATA",
        "/lib/os.py",
    ]
    assert list(used_files(read, folders)) == ["shop/__init__.py", "shop/page.html"]


def test_the_archive_has_bytecode_in_place_of_sources_and_is_the_same_each_time(tmp_path: Path) -> None:
    wheels, staged, source = tmp_path / "wheels", tmp_path / "staged", tmp_path / "page.py"
    wheels.mkdir()
    for name in ("core.so", "core.pyi"):
        (wheels / name).touch()
    source.write_text("ANSWER = 42\n")
    stage_modules(staged, {"shop/page.py": source, "shop/migrations/env.py": source}, wheels)
    (staged / "shop" / "page.pyc").touch()
    archives = [tmp_path / "first.zip", tmp_path / "second.zip"]
    for archive in archives:
        pack(staged, archive)
    assert zipfile.ZipFile(archives[0]).namelist() == ["core.so", "shop/migrations/env.py", "shop/page.pyc"]
    assert archives[0].read_bytes() == archives[1].read_bytes()
