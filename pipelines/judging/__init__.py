"""Judges each order by its rows in both databases and its messages. Rules classify the history of each order."""
