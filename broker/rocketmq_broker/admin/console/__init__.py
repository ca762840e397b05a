"""The web console for operators, started by `rocketmq-admin console`.

`create_console` is the entry point. An `Extension` adds further screens.
"""

from collections.abc import Callable

from starlette.applications import Starlette

from rocketmq_broker.admin.console.application import Extension, create_console
from rocketmq_broker.admin.console.drawing.sequence import Diagram, sequence_diagram
from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.pages import Pages, Section, url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.screens.check_replayed import CheckReplayedFacts, check_replayed
from rocketmq_broker.admin.console.screens.search import Finder, SearchHit
from rocketmq_broker.admin.console.screens.transaction import TransactionFacts, Witness, find_transactions
from rocketmq_broker.admin.console.settings import ConsoleSettings, UnusableSettings, console_settings
from rocketmq_broker.admin.console.visit import Visit

__all__ = [
    "CheckReplayedFacts",
    "ConsoleSettings",
    "Diagram",
    "Extension",
    "Finder",
    "FormAction",
    "Pages",
    "Screen",
    "SearchHit",
    "Section",
    "TransactionFacts",
    "UnusableSettings",
    "Visit",
    "Witness",
    "check_replayed",
    "console_settings",
    "create_console",
    "find_transactions",
    "sequence_diagram",
    "serve",
    "url",
]


async def serve(app: Starlette, settings: ConsoleSettings, on_ready: Callable[[str], None]) -> None:
    """Serves the application until SIGINT or SIGTERM. Calls `on_ready` with the address once the server listens.

    Raises UnusableSettings if it cannot listen. Only this function imports uvicorn: a console in a web page needs no server.
    """
    from rocketmq_broker.admin.console import serving

    await serving.serve(app, settings, on_ready)
