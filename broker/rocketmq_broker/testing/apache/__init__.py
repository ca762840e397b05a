"""What Apache's broker does otherwise, for tests that ask for it with `as_apache`. docs/testing.md has the list."""

from rocketmq_broker.testing.apache.like_apache import LikeApache
from rocketmq_broker.testing.apache.release import release_named

__all__ = ["LikeApache", "release_named"]
