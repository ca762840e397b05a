"""Tests the Java program of docs/testing.md, with Apache's own client."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rocketmq_broker

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow]
CHECKOUT = Path(__file__).parents[3]
LAUNCH = Path(__file__).parent / "java" / "launch"


def test_the_java_program_of_the_page_settles_a_lost_commit(tmp_path: Path) -> None:
    program = re.search(r"^```java\n(.*?)^```", (CHECKOUT / "docs" / "testing.md").read_text(), re.MULTILINE | re.DOTALL)
    assert program is not None
    (tmp_path / "LostCommit.java").write_text(program[1])
    environment = {**os.environ, "PYTHONPATH": str(Path(rocketmq_broker.__file__).parents[2])}
    ended = subprocess.run(
        [LAUNCH, tmp_path / "LostCommit.java", sys.executable],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    message = json.loads(ended.stdout)
    assert (message["keys"], message["body"]) == (["order-1"], "order 1 is paid")
