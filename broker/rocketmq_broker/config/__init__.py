"""The broker's settings, read from broker.conf with RocketMQ's property names."""

from rocketmq_broker.config.errors import ConfigError
from rocketmq_broker.config.settings import BrokerSettings, LoadedSettings, load_settings

__all__ = ["BrokerSettings", "ConfigError", "LoadedSettings", "load_settings"]
