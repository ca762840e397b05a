"""The console: what the operators' commands show and do, in a browser (`rocketmq-admin console`).

`create_console` is the door; a program that mounts screens of its own beside those of the broker hands in an `Extension`.
"""

from rocketmq_broker.admin.console.application import Extension, create_console
from rocketmq_broker.admin.console.deed import Deed
from rocketmq_broker.admin.console.pages import Section, url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.screens.transaction import TransactionFacts, Witness, find_transactions
from rocketmq_broker.admin.console.serving import serve
from rocketmq_broker.admin.console.settings import ConsoleSettings, UnusableSettings, console_settings
from rocketmq_broker.admin.console.visit import Visit

__all__ = [
    "ConsoleSettings",
    "Deed",
    "Extension",
    "Screen",
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
