"""Judges each order by its rows in both databases and its messages: events, a history for each order, and rules."""
