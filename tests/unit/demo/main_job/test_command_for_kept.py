"""The printed command that reconciles a kept run again is valid in a shell."""

import shlex
from pathlib import Path

from demo.main_job.running_services import RunningServices
from demo.main_job.verdict import command_for_kept


def test_each_store_and_both_databases_are_named_as_one_word_each() -> None:
    home = Path("/runs/a kept one")
    stores = (home / "broker" / "store" / "broker-a", home / "broker" / "store" / "broker-b")
    services = RunningServices("", f"sqlite:///{home}/orders.db", f"sqlite:///{home}/credits.db", stores, {})
    words = shlex.split(command_for_kept(home, services).replace("\\\n", " "))
    assert words[:2] == [f"ORDER_DATABASE_URL=sqlite:///{home}/orders.db", f"CREDIT_DATABASE_URL=sqlite:///{home}/credits.db"]
    assert words[2:6] == [".venv/bin/python", "-m", "pipelines", "reconcile"]
    assert [words[index + 1] for index, word in enumerate(words) if word == "--store"] == [str(store) for store in stores]
