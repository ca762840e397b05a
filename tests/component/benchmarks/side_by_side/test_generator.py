"""Tests of the load generator's output, and of its error if it cannot be built."""

from pathlib import Path

import pytest

from demo.processes import ProcessFailed
from lab.benchmarks.side_by_side import generator
from lab.benchmarks.side_by_side.environment import is_compiled
from lab.benchmarks.side_by_side.generator import CannotBuild, build, printed_json


def test_where_go_is_missing_the_bench_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(generator, "find_go", lambda: None)
    with pytest.raises(CannotBuild, match=r"Install Go 1\.19 or later .* BENCH=--java"):
        build(tmp_path / "load")


def test_what_the_compiler_says_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "go"
    compiler.write_text("#!/bin/sh\necho 'main.go:1: no such thing' >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(generator, "find_go", lambda: str(compiler))
    with pytest.raises(CannotBuild, match=r"could not build .*\nmain\.go:1: no such thing"):
        build(tmp_path / "load")


def test_the_result_is_the_line_of_json() -> None:
    assert printed_json("driver", 'a warning\n{"items": 3}\n') == {"items": 3}


def test_a_driver_that_printed_no_result_is_named_with_what_it_printed() -> None:
    with pytest.raises(ProcessFailed, match="the driver printed no result:\nthe broker does not answer"):
        printed_json("the driver", "the broker does not answer\n")


def test_a_module_of_python_source_is_not_compiled() -> None:
    assert [is_compiled(name) for name in ("lab.benchmarks.side_by_side.plan", "msgspec._core", "no_such_module")] == [
        False,
        True,
        False,
    ]
