"""Tracks parked messages: dead letters and discarded messages that an operator must handle.

For each action of an operator, the broker stores a mark that describes the action.
"""

from rocketmq_broker.server.parked.build import build_parked
from rocketmq_broker.server.parked.dead_letter_processor import DeadLetterProcessor
from rocketmq_broker.server.parked.mark import Mark, ParkedPlace, Treatment
from rocketmq_broker.server.parked.parked_messages import ParkedMessages

__all__ = ["DeadLetterProcessor", "Mark", "ParkedMessages", "ParkedPlace", "Treatment", "build_parked"]
