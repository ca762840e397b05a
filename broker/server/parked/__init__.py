"""Parked messages: dead letters and discarded messages. They wait for a person, and marks say what a person did about them."""

from broker.server.parked.mark import Mark, ParkedPlace, Treatment
from broker.server.parked.parked_messages import ParkedMessages

__all__ = ["Mark", "ParkedMessages", "ParkedPlace", "Treatment"]
