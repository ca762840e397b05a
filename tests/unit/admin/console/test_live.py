"""Live parts of pages are redrawn, sent only if they have changed, and ended when the console stops."""

import asyncio

from rocketmq_broker.admin.console.live import Streams, server_sent_event


def test_an_event_has_a_line_of_data_for_each_line_of_the_part() -> None:
    assert server_sent_event("part", "<p>\none\n</p>") == "event: part\ndata: <p>\ndata: one\ndata: </p>\n\n"
    assert server_sent_event("part", "") == "event: part\ndata: \n\n"


async def draw_one() -> str:
    await asyncio.sleep(0)
    return "one"


async def test_a_part_is_sent_at_once_and_again_only_when_it_changed() -> None:
    parts = iter(["one", "one", "one", "two"])

    async def draw() -> str:
        return next(parts)

    stream = Streams().events(draw, every_s=0.001)
    assert [await anext(stream), await anext(stream)] == [server_sent_event("part", "one"), server_sent_event("part", "two")]
    await stream.aclose()


async def test_streams_end_with_the_console_and_are_bounded() -> None:
    streams = Streams(max_streams=1)
    stream = streams.events(draw_one, every_s=60)
    assert not streams.is_full
    await anext(stream)
    assert streams.is_full
    streams.stopping.set()
    assert [part async for part in stream] == []
    assert not streams.is_full


async def test_pages_that_ask_at_once_do_not_pass_the_bound() -> None:
    streams = Streams(max_streams=32)
    begun = await asyncio.gather(*(streams.begun(draw_one, every_s=60) for _ in range(40)))
    live = [stream for stream in begun if stream is not None]
    assert len(live) == 32
    assert [await anext(stream) for stream in live] == [server_sent_event("part", "one")] * 32
    for stream in live:
        await stream.aclose()
    assert not streams.is_full


async def test_a_page_whose_visitor_left_before_its_first_part_counts_no_longer() -> None:
    streams = Streams(max_streams=1)
    stream = await streams.begun(draw_one, every_s=60)
    assert streams.is_full
    del stream
    for _ in range(5):
        await asyncio.sleep(0)
    assert not streams.is_full
