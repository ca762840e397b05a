"""Receiving: messages hidden for a time, acknowledged by their receipt handles, or back again."""
