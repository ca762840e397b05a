"""Redis URLs without secrets."""

from urllib.parse import urlsplit


def masked_redis(url: str) -> str:
    """Returns a Redis URL for logs, without user, password and parameters."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "<a URL that cannot be read>"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
