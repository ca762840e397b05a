"""Plays one scripted history of transactions by Apache's check() and by this broker's rules, side by side.

The package has no side effects: it starts no broker and does not wait.
"""

from rocketmq_broker.admin.replay.apache_check import ApacheHalf, ApacheQueues, CheckPass, PutBack
from rocketmq_broker.admin.replay.histories import HISTORIES
from rocketmq_broker.admin.replay.playing import LANES, Replay, ReplayRow, SideTotals, replay
from rocketmq_broker.admin.replay.script import CheckHistory, ScriptedTransaction

__all__ = [
    "HISTORIES",
    "LANES",
    "ApacheHalf",
    "ApacheQueues",
    "CheckHistory",
    "CheckPass",
    "PutBack",
    "Replay",
    "ReplayRow",
    "ScriptedTransaction",
    "SideTotals",
    "replay",
]
