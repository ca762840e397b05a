"""Whether Redis answers."""

from typing import Final

from redis import Redis, RedisError

_TIMEOUT_S: Final = 2.0


class RedisProbe:
    """Asks Redis itself, since Celery would only notice with the next task."""

    def __init__(self, url: str) -> None:
        """Connects to nothing yet. Raises ValueError for a URL that is none of Redis's."""
        self._redis = Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)

    def is_reachable(self) -> bool:
        """Whether it answers a PING now."""
        try:
            return bool(self._redis.ping())
        except RedisError:
            return False

    def close(self) -> None:
        """Closes the connection."""
        self._redis.close()
