"""The steps of one transaction, each with its source: `timeline`."""
