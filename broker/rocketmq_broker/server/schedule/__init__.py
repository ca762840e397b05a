"""Delivers delayed messages after the delay of their delay level."""
