"""Sends HTTP requests to the services, without a proxy.

A proxy from the environment (HTTP_PROXY, ALL_PROXY) can reach neither this machine's loopback address nor a container by name.
"""

from collections.abc import Mapping

import httpx


def ask(method: str, url: str, body: Mapping[str, object] | None = None, *, timeout_s: float) -> httpx.Response:
    """Sends a request with a JSON body, and returns the response. Raises httpx.TransportError or httpx.InvalidURL."""
    return httpx.request(method, url, json=body, timeout=timeout_s, trust_env=False)
