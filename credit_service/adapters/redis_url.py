"""Redis URLs as they may be shown."""

from urllib.parse import urlsplit


def masked_redis(url: str) -> str:
    """A Redis URL as it may be logged: no user, password or parameters."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "<a URL that cannot be read>"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
