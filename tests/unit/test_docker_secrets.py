"""The script that makes the passwords of docker-compose.yml."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = set(re.findall(r"^  ([a-z-]+): \{file: ", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE))


def make_secrets(folder: Path) -> None:
    subprocess.run([ROOT / "docker" / "make-secrets", folder], check=True, capture_output=True, timeout=60)


def test_each_secret_of_the_compose_file_is_made_at_random(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert made.keys() == NAMED
    assert len(set(made.values())) == len(NAMED) > 6
    assert all(re.fullmatch(r"[0-9a-f]{48}", password) for password in made.values())


def test_nobody_else_may_enter_the_folder(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700


def test_passwords_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "redis").write_text("my own")
    make_secrets(tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    make_secrets(tmp_path)
    assert before == {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert before["redis"] == "my own"


def test_empty_folders_that_docker_made_in_their_places_give_way(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    make_secrets(tmp_path)
    assert (tmp_path / "redis").is_file()
