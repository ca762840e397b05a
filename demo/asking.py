"""HTTP requests to the services of a run, sent straight to them.

A proxy that the shell names (HTTP_PROXY, ALL_PROXY) is for the world outside: it reaches neither this machine's loopback address
nor a container by its name.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx


def ask(method: str, url: str, body: Mapping[str, object] | None = None, *, timeout_s: float) -> httpx.Response:
    """Sends one request, with a body as JSON, and returns the answer. Raises httpx.TransportError and httpx.InvalidURL."""
    return httpx.request(method, url, json=body, timeout=timeout_s, trust_env=False)
