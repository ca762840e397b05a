"""Tests of the pytest plugin's output: the history of a test, and the reason why an async test cannot run."""

import pytest

SENDS_A_HALF_MESSAGE = """
from rocketmq_broker.client import LocalTransactionState, Message
from rocketmq_broker.testing import RocketMQ


class Undecided:
    def execute_local_transaction(self, message, arg):
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, message):
        return LocalTransactionState.UNKNOWN


async def test_a_half_message(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("shop", Undecided())
    await producer.send_message_in_transaction(Message.of("orders", "a book"))
"""
STRICT = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(SENDS_A_HALF_MESSAGE)
    return pytester


@pytest.mark.parametrize(("shown", "has_story"), [("-rP", True), ("-rA", True), ("-ra", False)])
def test_a_test_that_passes_tells_its_story_if_passed_tests_are_shown(run: pytest.Pytester, shown: str, has_story: bool) -> None:
    run.makeini(f"{STRICT}asyncio_mode = auto\n")
    result = run.runpytest_inprocess("-p", "rocketmq_broker.testing.plugin", shown)
    result.assert_outcomes(passed=1)
    assert ("shop sends a half message to orders" in result.stdout.str()) is has_story


def test_an_async_test_that_nothing_would_run_says_what_to_set(run: pytest.Pytester) -> None:
    run.makeini(STRICT)
    result = run.runpytest_inprocess("-p", "rocketmq_broker.testing.plugin")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no plugin runs this async test: set asyncio_mode = auto for pytest-asyncio, or mark*"])


ON_ANYIO = """
import asyncio
import pytest
from rocketmq_broker.client import Message

@pytest.fixture
def anyio_backend():
    return "BACKEND"

@pytest.mark.anyio
async def test_it(rocketmq):
    producer = await rocketmq.producer("shop")
    await producer.send(Message.of("orders", "a book"))
    began = asyncio.get_running_loop().time()
    await rocketmq.advance(minutes=15)
    assert asyncio.get_running_loop().time() - began == pytest.approx(900, abs=1)
"""


def test_a_test_that_anyio_runs_has_the_broker_on_its_loop(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ON_ANYIO.replace("BACKEND", "asyncio"))
    pytester.makeini(STRICT)
    pytester.runpytest_inprocess("-p", "rocketmq_broker.testing.plugin").assert_outcomes(passed=1)


def test_a_test_that_two_plugins_would_run_says_which_mark_to_drop(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ON_ANYIO.replace("BACKEND", "asyncio"))
    pytester.makeini(f"{STRICT}asyncio_mode = auto\n")
    result = pytester.runpytest_inprocess("-p", "rocketmq_broker.testing.plugin")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pytest-asyncio and anyio would each run a part of this test: remove the mark anyio*"])


def test_a_test_that_anyio_runs_without_pytest_asyncio_has_the_broker_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ON_ANYIO.replace("BACKEND", "asyncio"))
    pytester.runpytest_subprocess("-p", "no:asyncio", "-p", "rocketmq_broker.testing.plugin").assert_outcomes(passed=1)


def test_a_test_that_anyio_runs_on_trio_says_that_the_broker_needs_asyncio(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ON_ANYIO.replace("BACKEND", "trio"))
    pytester.makeini(STRICT)
    result = pytester.runpytest_inprocess("-p", "rocketmq_broker.testing.plugin")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*the broker runs on asyncio, and anyio runs this test on trio: return *asyncio* from the fixture anyio_backend*"]
    )


@pytest.mark.parametrize("question", ["committed('order-1')", "wait_until(lambda: False)"])
@pytest.mark.parametrize(("test", "wait"), [("async def", "await "), ("def", "")])
def test_a_test_that_fails_shows_its_own_line_and_none_of_the_fixture(
    run: pytest.Pytester, test: str, wait: str, question: str
) -> None:
    run.makepyfile(f"{test} test_it(rocketmq):\n    {wait}rocketmq.{question}\n")
    run.makeini(f"{STRICT}asyncio_mode = auto\n")
    result = run.runpytest_inprocess("-p", "rocketmq_broker.testing.plugin")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f">       {wait}rocketmq.{question}", "E       AssertionError: *"])
    result.stdout.no_fnmatch_line("*broker/rocketmq_broker/testing/*")
    result.stdout.no_fnmatch_line("*concurrent/futures*")
