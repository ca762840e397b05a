"""Synchronous interfaces to the broker's client, and to the positions of a consumer."""
