"""Manages topics, subscription groups, consumer offsets, and the registration with name servers."""
