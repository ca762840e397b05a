"""Runs a recipe: `python -m tutorials.recipes RECIPE`.

Uses the broker at NAMESRV_ADDR, or starts a temporary broker.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from rocketmq_broker.stop_signals import until_interrupted

RECIPES = sorted(program.parent.name for program in Path(__file__).parent.glob("*/__main__.py"))


@contextmanager
def broker() -> Iterator[dict[str, str]]:
    """Starts a broker in memory on free ports, and yields its addresses. It has a gRPC port if h2 is installed."""
    command = [sys.executable, "-m", "rocketmq_broker", "--ephemeral", *(["--grpc-port", "0"] if find_spec("h2") else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise SystemExit("recipes: the broker did not start; its output is above")
            yield json.loads(line)
        finally:
            process.terminate()


def main(arguments: list[str]) -> None:
    """Runs a recipe. Without NAMESRV_ADDR it uses a temporary broker, and without DATABASE_URL a temporary database."""
    if len(arguments) != 1 or arguments[0] not in RECIPES:
        raise SystemExit(f"recipes: run python -m tutorials.recipes NAME with one of these names: {', '.join(RECIPES)}")
    with TemporaryDirectory() as folder:
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/recipe.db")
        if "NAMESRV_ADDR" in os.environ:
            run(arguments[0])
        else:
            with broker() as addresses:
                os.environ["NAMESRV_ADDR"] = addresses["namesrvAddr"]
                os.environ["GRPC_ENDPOINTS"] = addresses.get("grpcEndpoint", "")
                print(f"a broker in memory, with its name server at {os.environ['NAMESRV_ADDR']}", flush=True)
                run(arguments[0])


def run(recipe: str) -> None:
    """Runs a recipe in this process, like `python -m tutorials.recipes.RECIPE`."""
    runpy.run_module(f"tutorials.recipes.{recipe}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    with until_interrupted():
        main(sys.argv[1:])
