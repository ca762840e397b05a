"""The pytest plugin: the fixtures `rocketmq` and `rocketmq_session`, and a section `rocketmq` in the report of a failed test.

The section lists the broker's latest events. The options `-rP` and `-rA`, which show the output of passed tests, also add the
section to the reports of passed tests.

The plugin imports the broker only for tests that use it, because pytest loads the plugin wherever the package is installed.
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
    """Registers the marker `rocketmq`."""
    config.addinivalue_line("markers", "rocketmq(seed, store, start_ms): the arguments of the fixture rocketmq, see RocketMQ")


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    """Returns the broker's settings, named as in broker.conf.

    Override this fixture for other settings: {"transactionTimeOut": 1000}.
    """
    return {}


@pytest.fixture(scope="session")
def rocketmq_session_settings() -> Mapping[str, object]:
    """Returns the settings of the broker that all tests of a session share, named as in broker.conf."""
    return {}


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest) -> RocketMQ | SyncRocketMQ:
    """Returns a broker for one test: RocketMQ for an async test, SyncRocketMQ for other tests."""
    is_async = inspect.iscoroutinefunction(getattr(request, "function", None))
    running: RocketMQ | SyncRocketMQ = request.getfixturevalue(_async_fixture_for(request) if is_async else "_sync_rocketmq")
    request.node.stash[_running] = running
    return running


def _async_fixture_for(request: pytest.FixtureRequest) -> str:
    """Returns the name of the fixture for the plugin that runs this async test. Fails the test if no plugin runs it."""
    is_of_asyncio = request.node.get_closest_marker("asyncio") is not None
    is_of_anyio = "anyio_backend" in request.fixturenames
    if is_of_asyncio and is_of_anyio:
        pytest.fail(
            "pytest-asyncio and anyio would each run a part of this test: remove the mark anyio, or set asyncio_mode = strict "
            "and remove the mark asyncio",
            pytrace=False,
        )
    if is_of_anyio:
        backend = request.getfixturevalue("anyio_backend")
        name = backend if isinstance(backend, str) else backend[0]
        if name == "asyncio":
            return "_anyio_rocketmq"
        pytest.fail(
            f"the broker runs on asyncio, and anyio runs this test on {name}: "
            'return "asyncio" from the fixture anyio_backend (https://anyio.readthedocs.io/en/stable/testing.html)',
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
    """Yields one broker for all tests of the session. The broker keeps the messages of earlier tests."""
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
"""The fixture for anyio's plugin, which runs it on the test's event loop."""
if async_fixture is not None:
    _asyncio_rocketmq = async_fixture(name="_asyncio_rocketmq")(_rocketmq_of_a_test)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the broker's events to the report of a failed test, and of a passed test if passed tests are shown."""
    report = yield
    running = item.stash.get(_running, None)
    is_shown = report.failed or not {"A", "P"}.isdisjoint(item.config.getoption("reportchars"))
    if report.when == "call" and is_shown and running is not None:
        report.sections.append(("rocketmq", running.story()))
    return report


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    marker = request.node.get_closest_marker("rocketmq")
    return dict(marker.kwargs) if marker is not None else {}
