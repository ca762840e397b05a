"""The pytest plugin: fixtures `rocketmq` and `rocketmq_session`, and the broker's story in the report of a failed test.

With `-rP` or `-rA`, by which pytest shows the output of passed tests, it adds their stories too.

It imports the broker only for tests that use it: pytest loads the plugin wherever the package is installed.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rocketmq_broker.testing.rocketmq import RocketMQ
    from rocketmq_broker.testing.sync import SyncRocketMQ

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:
    async_fixture = None  # type: ignore[assignment]

_running = pytest.StashKey["RocketMQ | SyncRocketMQ"]()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line("markers", "rocketmq(seed, store, start_ms): how the fixture rocketmq is to be, see RocketMQ")


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    """Returns settings of the broker by RocketMQ's names; override it for others, such as {"transactionTimeOut": 1000}."""
    return {}


@pytest.fixture(scope="session")
def rocketmq_session_settings() -> Mapping[str, object]:
    """Returns settings of the broker that all tests of a session share."""
    return {}


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest) -> RocketMQ | SyncRocketMQ:
    """Returns a RocketMQ for one test: RocketMQ for an async test, SyncRocketMQ for any other."""
    is_async = inspect.iscoroutinefunction(getattr(request, "function", None))
    running: RocketMQ | SyncRocketMQ = request.getfixturevalue(_async_fixture_for(request) if is_async else "_sync_rocketmq")
    request.node.stash[_running] = running
    return running


def _async_fixture_for(request: pytest.FixtureRequest) -> str:
    """Returns the name of the fixture for the plugin that runs this async test. Fails the test if none does."""
    is_of_asyncio = request.node.get_closest_marker("asyncio") is not None
    is_of_anyio = "anyio_backend" in request.fixturenames
    if is_of_asyncio and is_of_anyio:
        pytest.fail(
            "pytest-asyncio and anyio would each run a part of this test: drop the mark anyio, or set asyncio_mode = strict "
            "and drop the mark asyncio",
            pytrace=False,
        )
    if is_of_anyio:
        backend = request.getfixturevalue("anyio_backend")
        name = backend if isinstance(backend, str) else backend[0]
        if name == "asyncio":
            return "_anyio_rocketmq"
        pytest.fail(
            f"the broker runs on asyncio, and anyio runs this test on {name}: "
            'have the fixture anyio_backend return "asyncio" (https://anyio.readthedocs.io/en/stable/testing.html)',
            pytrace=False,
        )
    if is_of_asyncio:
        if async_fixture is not None:
            return "_asyncio_rocketmq"
        pytest.fail(
            "this test is marked asyncio, which needs pytest-asyncio: pip install pytest-asyncio, "
            "or write `async with RocketMQ() as rocketmq:`",
            pytrace=False,
        )
    pytest.fail(  # pytest-asyncio ignores it in strict mode
        "no plugin runs this async test: set asyncio_mode = auto for pytest-asyncio, "
        "or mark the test with @pytest.mark.asyncio or @pytest.mark.anyio",
        pytrace=False,
    )


@pytest.fixture(scope="session")
def rocketmq_session(rocketmq_session_settings: Mapping[str, object]) -> Iterator[SyncRocketMQ]:
    """Yields one RocketMQ for all tests that use it; each test finds the messages of earlier ones."""
    from rocketmq_broker.testing.sync import SyncRocketMQ

    with SyncRocketMQ(rocketmq_session_settings) as running:
        yield running


@pytest.fixture
def _sync_rocketmq(request: pytest.FixtureRequest, rocketmq_settings: Mapping[str, object]) -> Iterator[SyncRocketMQ]:
    from rocketmq_broker.testing.sync import SyncRocketMQ

    with SyncRocketMQ(rocketmq_settings, **_options(request)) as running:
        yield running


async def _rocketmq_of_a_test(request: pytest.FixtureRequest, rocketmq_settings: Mapping[str, object]) -> AsyncIterator[RocketMQ]:
    from rocketmq_broker.testing.rocketmq import RocketMQ

    async with RocketMQ(rocketmq_settings, **_options(request)) as running:
        yield running


_anyio_rocketmq = pytest.fixture(name="_anyio_rocketmq")(_rocketmq_of_a_test)
"""anyio's own plugin runs it, on the loop of the test."""
if async_fixture is not None:
    _asyncio_rocketmq = async_fixture(name="_asyncio_rocketmq")(_rocketmq_of_a_test)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the story to the report of a failed test, or of a passed one if passed tests are shown."""
    report = yield
    running = item.stash.get(_running, None)
    is_shown = report.failed or not {"A", "P"}.isdisjoint(item.config.getoption("reportchars"))
    if report.when == "call" and is_shown and running is not None:
        report.sections.append(("rocketmq", running.story()))
    return report


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    marker = request.node.get_closest_marker("rocketmq")
    return dict(marker.kwargs) if marker is not None else {}
