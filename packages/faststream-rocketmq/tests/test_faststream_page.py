"""Tests that the program of docs/faststream.md passes its own tests, and runs with a broker in a separate process."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs" / "faststream.md").read_text()
FILES = dict(re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
PATHS = os.pathsep.join(map(str, (CHECKOUT / "broker", CHECKOUT / "packages" / "faststream-rocketmq")))

pytest_plugins = ["pytester"]


@pytest.mark.slow
def test_the_program_passes_its_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATHS)
    for name, text in FILES.items():
        (pytester.path / name).write_text(text)
    pytester.makeini("[pytest]\nasyncio_mode = auto\npythonpath = .")
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


@pytest.mark.e2e
@pytest.mark.slow
def test_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "order_app.py").write_text(FILES["order_app.py"])
    environment = {**os.environ, "PYTHONPATH": PATHS, "PYTHONUNBUFFERED": "1"}
    broker = [sys.executable, "-m", "rocketmq_broker", "--ephemeral"]
    program = [sys.executable, "-c", "import asyncio, order_app; asyncio.run(order_app.app.run())"]
    with subprocess.Popen(broker, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        environment["NAMESRV_ADDR"] = json.loads(serving.stdout.readline())["namesrvAddr"]
        with subprocess.Popen(program, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            lines = []
            for line in running.stdout:
                lines.append(line)
                if "points" in line:
                    break
            running.terminate()
            assert lines[-1:] == ["order order-1 gives 12 points\n"]
            assert running.wait(30) == 0
        serving.terminate()
