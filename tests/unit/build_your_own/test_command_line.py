"""The tester's command line names the arguments that it requires."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tutorials.build_your_own.__main__ import BAD_USAGE, application
from tutorials.build_your_own.curriculum import STAGES


def test_list_names_each_stage_and_its_text() -> None:
    lines = CliRunner().invoke(application, ["list"]).stdout.splitlines()
    assert [line[:26].split(None, 1)[1].strip() for line in lines] == [stage.title for stage in STAGES]
    assert all(Path(line.split()[-1]).is_file() for line in lines)


@pytest.mark.parametrize("chosen", [[], ["--all", "--stage", "1"], ["--until", "3", "--all"]])
def test_the_stages_are_chosen_in_one_way(chosen: list[str]) -> None:
    run = CliRunner().invoke(application, ["test", *chosen, "--", "my-broker"])
    assert run.exit_code == BAD_USAGE
    assert run.stderr == "Choose the stages to test: --stage N, --until N, or --all.\n"


def test_a_folder_to_keep_files_in_must_be_new(tmp_path: Path) -> None:
    run = CliRunner().invoke(application, ["test", "--stage", "1", "--keep", str(tmp_path), "--", "my-broker"])
    assert run.exit_code == BAD_USAGE
    assert run.stderr == f"--keep {tmp_path}: File exists. Choose a folder that does not exist.\n"


@pytest.mark.parametrize("number", ["0", "13", "one"])
def test_a_stage_that_does_not_exist_is_refused(number: str) -> None:
    run = CliRunner().invoke(application, ["test", "--stage", number, "--", "my-broker"])
    assert run.exit_code == BAD_USAGE
    assert "--stage" in run.stderr
