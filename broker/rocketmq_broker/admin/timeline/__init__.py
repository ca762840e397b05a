"""The command `timeline`, which shows the steps of a transaction and the source of each step."""
