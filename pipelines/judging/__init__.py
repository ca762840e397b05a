"""Judges each order by its rows in both databases and its messages. Events become a history, to which rules apply."""
