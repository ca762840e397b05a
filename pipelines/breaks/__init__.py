"""Tracks breaks, which are findings of reconciliations, from their first appearance until they are closed."""
