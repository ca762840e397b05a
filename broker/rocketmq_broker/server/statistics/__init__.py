"""The broker's counters."""
