"""Renders the page of a world (a simulated run): one self-contained HTML file."""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rocketmq_broker.testing.simulation.page.beside import columns_of, only_in
from rocketmq_broker.testing.simulation.page.comparing import Pair, pairs_of
from rocketmq_broker.testing.simulation.page.lanes import lanes_of
from rocketmq_broker.testing.simulation.page.markup import counted, escaped, moment_text
from rocketmq_broker.testing.simulation.page.scene import scene_of
from rocketmq_broker.testing.simulation.page.summary import beside_sentence, broken_sentence, faults_sentence
from rocketmq_broker.testing.simulation.page.world_report import ReportedEvent, ReportedKind, WorldReport

_HERE: Final = Path(__file__).parent
_MAX_PLAN_LENGTH: Final = 60_000
_MAX_OTHERS: Final = 20
BROKEN: Final = "broken"
"""The HTML id of the first broken promise."""


def page_of(world: WorldReport, beside: WorldReport | None = None) -> str:
    """Returns the HTML page of a world. `beside` is the same run without its last fault.

    The same arguments always produce the same page. The size of the page is limited, regardless of the number of events.
    """
    scene = scene_of(world, world.first_broken)
    anchors = _anchors(scene.happenings)
    links = dict(zip(scene.happenings, anchors, strict=True))
    pairs = [] if beside is None else pairs_of(scene.happenings, scene_of(beside, world.first_broken).happenings)
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    return (
        f"{_head(world, script)}<body>\n<main>\n<h1>{escaped(world.title)} <small>world {world.seed}</small></h1>\n"
        f"{_verdict(world, beside, links)}"
        f'<div class="bar"><h2 id="story">Events</h2>{_switch(world, len(scene.shown))}</div>\n'
        f"{lanes_of(world, scene, anchors, only_in(pairs))}"
        f"{_beside(world, beside, pairs)}{_others(world)}{_origin(world)}</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _head(world: WorldReport, script: str) -> str:
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script_hash}'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>World {world.seed}: {escaped(world.title)}</title>\n<style>\n{style}</style>\n</head>\n"
    )


def _anchors(happenings: list[ReportedEvent]) -> list[str]:
    anchors = [f"h{number}" for number in range(len(happenings))]
    first = next((place for place, happening in enumerate(happenings) if happening.kind == ReportedKind.VIOLATION), None)
    if first is not None:
        anchors[first] = BROKEN
    return anchors


def _verdict(world: WorldReport, beside: WorldReport | None, links: Mapping[ReportedEvent, str]) -> str:
    ways = [f'<a href="#{BROKEN}">Go to the moment</a>'] if world.violations else []
    compared = ""
    if beside is not None:
        compared = f"<p>{beside_sentence(world, beside)}</p>\n"
        ways.append('<a href="#beside">Compare both worlds</a>')
    ways.append('<a href="#repeat">Repeat this run</a>')
    return (
        f'<div class="verdict {"bad" if world.violations else "good"}">\n<p>{broken_sentence(world)}</p>\n'
        f"<p>{faults_sentence(world, links)}</p>\n{compared}"
        f'<p class="ways">{" ".join(ways)}</p>\n</div>\n'
    )


def _switch(world: WorldReport, shown: int) -> str:
    count = f"{shown:,} of {counted(max(shown, len(world.happenings)), 'event')}"
    return (
        f'<span class="faint">{count}; times in minutes:seconds since the world began</span>'
        '<label hidden><input type="checkbox" id="everything"> Show everything</label>'
    )


def _beside(world: WorldReport, beside: WorldReport | None, pairs: list[Pair]) -> str:
    if beside is None:
        return ""
    return f'<h2 id="beside">The same world without the last fault</h2>\n{columns_of(world, beside, pairs)}'


def _others(world: WorldReport) -> str:
    others = sorted(world.violations, key=lambda broken: broken.at_ns)[1:]
    if not others:
        return ""
    items = [f"<li>{moment_text(one.at_ns)} “{escaped(one.promise)}”: {escaped(one.text)}</li>\n" for one in others[:_MAX_OTHERS]]
    if len(others) > _MAX_OTHERS:
        items.append(f"<li>and {len(others) - _MAX_OTHERS:,} more</li>\n")
    return f"<h2>Promises that broke after the first one</h2>\n<ul>\n{''.join(items)}</ul>\n"


def _origin(world: WorldReport) -> str:
    command = f'<pre class="command" tabindex="0">{_lines(world.how_to_repeat)}</pre>\n' if world.how_to_repeat else ""
    digest = f"<p>Digest of the whole history: <code>{escaped(world.digest)}</code>. A repeated run has the same digest.</p>\n"
    plan = json.dumps(world.plan, indent=2, ensure_ascii=False)
    return (
        f'<h2 id="repeat">Repeat this run</h2>\n{command}{digest if world.digest else ""}'
        f"<details><summary>The plan: the customers' actions and the faults</summary>\n"
        f'<pre class="plan" tabindex="0">{_lines(plan, _MAX_PLAN_LENGTH)}</pre></details>\n'
    )


def _lines(text: str, max_length: int | None = None) -> str:
    cut = text[:max_length]
    more = f"\n… and {len(text) - len(cut):,} more characters" if len(cut) < len(text) else ""
    return "\n".join(escaped(line, None) for line in cut.split("\n")) + more
