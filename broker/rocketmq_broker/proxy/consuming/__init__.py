"""Receiving and acknowledging messages, with invisible times and receipt handles."""
