"""The web console for operators, started by `rocketmq-admin console`.

`create_console` is the entry point. An `Extension` adds further screens.
"""

from rocketmq_broker.admin.console.application import Extension, create_console
from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.pages import Section, url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.screens.search import Finder, SearchHit
from rocketmq_broker.admin.console.screens.transaction import TransactionFacts, Witness, find_transactions
from rocketmq_broker.admin.console.serving import serve
from rocketmq_broker.admin.console.settings import ConsoleSettings, UnusableSettings, console_settings
from rocketmq_broker.admin.console.visit import Visit

__all__ = [
    "ConsoleSettings",
    "Extension",
    "Finder",
    "FormAction",
    "Screen",
    "SearchHit",
    "Section",
    "TransactionFacts",
    "UnusableSettings",
    "Visit",
    "Witness",
    "console_settings",
    "create_console",
    "find_transactions",
    "serve",
    "url",
]
