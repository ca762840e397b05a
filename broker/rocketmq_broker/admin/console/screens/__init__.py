"""The console's own screens and forms."""

from collections.abc import Sequence
from typing import Final

from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.pages import Section
from rocketmq_broker.admin.console.sampling import Sampler
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.screens import (
    check_replayed,
    clients,
    dead_letters,
    discarded,
    groups,
    messages,
    overview,
    pending,
    record,
    resetting,
    search,
    sending,
    topics,
    transaction,
)
from rocketmq_broker.admin.console.screens.search import Finder
from rocketmq_broker.admin.console.screens.transaction import Witness
from rocketmq_broker.world import World

_SECTIONS: Final = (
    Section("Pending", "/pending"),
    Section("Discarded", "/discarded"),
    Section("Dead letters", "/dead-letters"),
    Section("Decided", "/decided"),
    Section("Topics", "/topics"),
    Section("Groups", "/groups"),
    Section("Clients", "/clients"),
    Section("Messages", "/messages"),
)


def own_sections(overview_path: str) -> list[Section]:
    """Returns the navigation entries of the console's own screens. The overview is at `overview_path`."""
    return [Section("Overview", overview_path), *_SECTIONS]


def own_screens(sampler: Sampler, witnesses: Sequence[Witness], finders: Sequence[Finder], overview_path: str) -> list[Screen]:
    """Returns the console's own screens. `witnesses` and `finders` are the event and search sources of extensions."""
    return [
        overview.screen(sampler, overview_path),
        pending.SCREEN,
        discarded.SCREEN,
        *dead_letters.SCREENS,
        dead_letters.letter_screen(witnesses),
        transaction.DECIDED_SCREEN,
        transaction.screen(witnesses),
        check_replayed.SCREEN,
        search.screen(finders),
        *topics.SCREENS,
        *sending.SCREENS,
        *groups.SCREENS,
        resetting.SCREEN,
        clients.SCREEN,
        *messages.SCREENS,
        record.SCREEN,
    ]


def own_actions(world: World) -> list[FormAction]:
    """Returns the console's own actions."""
    of_parked = (*discarded.ACTIONS, *dead_letters.ACTIONS)
    return [*transaction.ACTIONS, *of_parked, sending.send_action(world), sending.CREATE_ACTION, resetting.ACTION]
