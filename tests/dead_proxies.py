"""Environment variables for proxies that are unreachable, so that a request to loopback through a proxy fails."""

from typing import Final

_NAMES: Final = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")

DEAD_PROXIES: Final = {
    **{name: f"{'socks5' if name.lower() == 'all_proxy' else 'http'}://127.0.0.1:9" for name in _NAMES},
    "NO_PROXY": "",
    "no_proxy": "",
}
"""Port 9 refuses. httpx refuses the SOCKS proxy itself, before it looks at NO_PROXY."""
