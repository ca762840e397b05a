"""Runs the fuzzer for a small number of inputs in every test run; `make fuzz` runs it for an hour."""

import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.lab.fuzz.calls import fuzz_calls
from tests.lab.fuzz.clients import fuzz_answers, fuzz_requests
from tests.lab.fuzz.servers import fuzz_servers
from tests.lab.fuzz.watch import MAX_MS, Watch

Fuzz = Callable[[Watch, random.Random, int], Coroutine[Any, Any, None]]


@pytest.mark.parametrize(
    ("fuzz", "inputs"), [(fuzz_servers, 2000), (fuzz_answers, 1000), (fuzz_requests, 500), (fuzz_calls, 5000)]
)
@pytest.mark.parametrize("seed", [1, 2])
async def test_fuzzed_frames_are_refused_with_a_sentence_and_harm_nobody(fuzz: Fuzz, inputs: int, seed: int) -> None:
    watch = Watch()
    with watch.logs():
        await fuzz(watch, random.Random(seed), inputs)

    assert sum(watch.inputs.values()) >= inputs
    print(watch.report())
    assert not watch.findings, watch.report()


async def test_a_traceback_in_the_log_is_a_finding_of_the_frame_that_brought_it() -> None:
    watch = Watch()
    with watch.logs(), watch.frame("broker", "SEND_MESSAGE", b"\x01\x02"):
        raise KeyError("mistake")

    (found,) = watch.findings.values()
    assert "SEND_MESSAGE 0102" in found.example
    assert watch.worst_ms < MAX_MS * 100
