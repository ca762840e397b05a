"""Delayed delivery by delay level."""
