"""Synchronous interfaces to the broker's client: a consumer in a thread, and a sender."""
