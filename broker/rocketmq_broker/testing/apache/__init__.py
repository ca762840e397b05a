"""Imitates the behaviour of Apache's broker in tests that call `as_apache`. docs/testing.md lists the differences."""

from rocketmq_broker.testing.apache.like_apache import LikeApache
from rocketmq_broker.testing.apache.release import release_named

__all__ = ["LikeApache", "release_named"]
