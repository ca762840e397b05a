"""Assembles the console from screens, forms, middleware and extensions."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from rocketmq_broker.admin.console import login
from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.guard import Guard
from rocketmq_broker.admin.console.live import Streams
from rocketmq_broker.admin.console.pages import Pages, Section
from rocketmq_broker.admin.console.routes import ConsoleRoutes
from rocketmq_broker.admin.console.sampling import Sampler
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.screens import own_actions, own_screens, own_sections
from rocketmq_broker.admin.console.screens.search import Finder
from rocketmq_broker.admin.console.screens.transaction import Witness
from rocketmq_broker.admin.console.settings import ConsoleSettings
from rocketmq_broker.admin.console.tokens import Tokens
from rocketmq_broker.admin.console.wording.language_switch import LanguageSwitch
from rocketmq_broker.admin.session import Target
from rocketmq_broker.world import current_world

STATIC: Final = Path(__file__).parent / "static"
_COOKIE_AGE_S: Final = 12 * 3600

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Extension:
    """The screens, forms and templates that another program adds to the console."""

    sections: Sequence[Section] = ()
    """Additional navigation entries, shown before those of the console."""
    screens: Sequence[Screen] = ()
    """Additional screens. A screen at `/` becomes the home page, and moves the overview to `/overview`."""
    actions: Sequence[FormAction] = ()
    templates: Path | None = None
    witnesses: Sequence[Witness] = ()
    """Additional sources of transaction events."""
    finders: Sequence[Finder] = ()
    """Additional sources for the search, such as a customer database."""


def create_console(settings: ConsoleSettings, target: Target, extension: Extension | None = None) -> Starlette:
    """Returns the console for the target's brokers as an ASGI application.

    `state.streams` holds the event streams of its live pages.
    """
    added = extension or Extension()
    world, brokers, streams = current_world(), Brokers(target), Streams()
    sampler = Sampler(brokers, world)
    overview_path = "/overview" if any(screen.path == "/" for screen in added.screens) else "/"
    pages = Pages([*added.sections, *own_sections(overview_path)], [added.templates] if added.templates is not None else [])
    routes = ConsoleRoutes(brokers, pages, streams, world.wall_ms)
    screens = [*own_screens(sampler, added.witnesses, added.finders, overview_path), *added.screens]
    middleware = [
        Middleware(Guard, settings=settings),
        Middleware(LanguageSwitch),
        Middleware(
            SessionMiddleware,
            secret_key=world.nonce(32).hex(),
            session_cookie=f"console-{settings.port}",
            max_age=_COOKIE_AGE_S,
            same_site="strict",
        ),
        Middleware(Tokens, world=world),
    ]
    login_routes: list[BaseRoute] = []
    if settings.password is not None:
        page = login.Login(login.PasswordCheck(settings.password, world), pages)
        login_routes = [Route(login.PATH, page.show, methods=["GET"]), Route(login.PATH, page.submit, methods=["POST"])]
        middleware.append(Middleware(login.RequireLogin))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        await brokers.open()
        sampler.start()
        try:
            yield
        finally:
            await sampler.stop()
            await brokers.close()

    app = Starlette(
        routes=[
            *routes.screen_routes(screens),
            *routes.action_routes([*own_actions(world), *added.actions]),
            *login_routes,
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=middleware,
        exception_handlers=routes.exception_handlers,
        lifespan=lifespan,
    )
    app.state.streams = streams
    return app
