"""Synchronous interfaces to the broker's client, for a consumer in a thread and for a sender."""
