"""The command `timeline`: the steps of a transaction, each with its source."""
