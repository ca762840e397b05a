"""The broker's settings, under RocketMQ's own names, read from broker.conf."""

from rocketmq_broker.config.errors import ConfigError
from rocketmq_broker.config.settings import BrokerSettings, LoadedSettings, load_settings

__all__ = ["BrokerSettings", "ConfigError", "LoadedSettings", "load_settings"]
