"""The page of a world, from the first sentence to the plan: one file without a network."""

from __future__ import annotations

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
from rocketmq_broker.testing.simulation.page.told import ToldHappening, ToldKind, ToldWorld

_HERE: Final = Path(__file__).parent
_MAX_PLAN_LENGTH: Final = 60_000
_MAX_OTHERS: Final = 20
BROKEN: Final = "broken"
"""The id of the first broken promise."""


def page_of(told: ToldWorld, beside: ToldWorld | None = None) -> str:
    """Returns one HTML file that tells a world. `beside` is the same world without its last fault.

    The same values give the same text. Its size is bounded, however much happened.
    """
    scene = scene_of(told, told.first_broken)
    anchors = _anchors(scene.happenings)
    links = dict(zip(scene.happenings, anchors, strict=True))
    pairs = [] if beside is None else pairs_of(scene.happenings, scene_of(beside, told.first_broken).happenings)
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    return (
        f"{_head(told, script)}<body>\n<main>\n<h1>{escaped(told.title)} <small>world {told.seed}</small></h1>\n"
        f"{_verdict(told, beside, links)}"
        f'<div class="bar"><h2 id="story">What happened</h2>{_switch(told, len(scene.shown))}</div>\n'
        f"{lanes_of(told, scene, anchors, only_in(pairs))}"
        f"{_beside(told, beside, pairs)}{_others(told)}{_origin(told)}</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _head(told: ToldWorld, script: str) -> str:
    style = (_HERE / "page.css").read_text(encoding="utf-8")
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script_hash}'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>World {told.seed}: {escaped(told.title)}</title>\n<style>\n{style}</style>\n</head>\n"
    )


def _anchors(happenings: list[ToldHappening]) -> list[str]:
    anchors = [f"h{number}" for number in range(len(happenings))]
    first = next((place for place, happening in enumerate(happenings) if happening.kind == ToldKind.VIOLATION), None)
    if first is not None:
        anchors[first] = BROKEN
    return anchors


def _verdict(told: ToldWorld, beside: ToldWorld | None, links: Mapping[ToldHappening, str]) -> str:
    ways = [f'<a href="#{BROKEN}">Go to the moment</a>'] if told.violations else []
    compared = ""
    if beside is not None:
        compared = f"<p>{beside_sentence(told, beside)}</p>\n"
        ways.append('<a href="#beside">Compare both worlds</a>')
    ways.append('<a href="#repeat">Play it again</a>')
    return (
        f'<div class="verdict {"bad" if told.violations else "good"}">\n<p>{broken_sentence(told)}</p>\n'
        f"<p>{faults_sentence(told, links)}</p>\n{compared}"
        f'<p class="ways">{" ".join(ways)}</p>\n</div>\n'
    )


def _switch(told: ToldWorld, shown: int) -> str:
    count = f"{shown:,} of {counted(max(shown, len(told.happenings)), 'happening')}"
    return (
        f'<span class="faint">{count}; times in minutes:seconds since the world began</span>'
        '<label hidden><input type="checkbox" id="everything"> Show everything</label>'
    )


def _beside(told: ToldWorld, beside: ToldWorld | None, pairs: list[Pair]) -> str:
    if beside is None:
        return ""
    return f'<h2 id="beside">The same world without the last fault</h2>\n{columns_of(told, beside, pairs)}'


def _others(told: ToldWorld) -> str:
    others = sorted(told.violations, key=lambda broken: broken.at_ns)[1:]
    if not others:
        return ""
    items = [f"<li>{moment_text(one.at_ns)} “{escaped(one.promise)}”: {escaped(one.text)}</li>\n" for one in others[:_MAX_OTHERS]]
    if len(others) > _MAX_OTHERS:
        items.append(f"<li>and {len(others) - _MAX_OTHERS:,} more</li>\n")
    return f"<h2>Promises that broke after the first one</h2>\n<ul>\n{''.join(items)}</ul>\n"


def _origin(told: ToldWorld) -> str:
    command = f'<pre class="command" tabindex="0">{_lines(told.how_to_repeat)}</pre>\n' if told.how_to_repeat else ""
    digest = f"<p>Digest of the whole history: <code>{escaped(told.digest)}</code>. An equal run has an equal digest.</p>\n"
    plan = json.dumps(told.plan, indent=2, ensure_ascii=False)
    return (
        f'<h2 id="repeat">Play it again</h2>\n{command}{digest if told.digest else ""}'
        f"<details><summary>The plan: what customers do, and what goes wrong</summary>\n"
        f'<pre class="plan" tabindex="0">{_lines(plan, _MAX_PLAN_LENGTH)}</pre></details>\n'
    )


def _lines(text: str, longest: int | None = None) -> str:
    cut = text[:longest]
    more = f"\n… and {len(text) - len(cut):,} more characters" if len(cut) < len(text) else ""
    return "\n".join(escaped(line, None) for line in cut.split("\n")) + more
