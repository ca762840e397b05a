"""Runs a program with a coordinator: `python -m tutorials.halfway saga FOLDER place order-1 kill`, or tcc, or xa."""

import importlib
import sys
from pathlib import Path

from rocketmq_broker.stop_signals import until_interrupted
from tutorials.halfway.services import show

if __name__ == "__main__":
    with until_interrupted():
        program, folder = importlib.import_module(f"tutorials.halfway.{sys.argv[1]}"), Path(sys.argv[2])
        match sys.argv[3:]:
            case ["place", order_id, *kill]:
                program.place(folder, order_id, is_killed=kill == ["kill"])
            case ["recover"]:
                program.recover(folder)
            case ["show", order_id]:
                show(folder, order_id, "orders", "credits", "log")
