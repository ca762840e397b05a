"""The brokers of the race: this project's broker in virtual time, and Apache's broker in real time."""

from tutorials.race.brokers.apache import ApacheBroker, ApacheFiveBroker
from tutorials.race.brokers.own import OwnBroker
from tutorials.race.brokers.raced_broker import BrokerCannotRun, RacedBroker

__all__ = ["ApacheBroker", "ApacheFiveBroker", "BrokerCannotRun", "OwnBroker", "RacedBroker"]
