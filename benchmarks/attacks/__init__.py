"""Attacks on a started broker, console and store of this machine, each bounded, with the attacker's gain in one line."""
