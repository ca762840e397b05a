"""Tables by ADBC, readable with any values in their columns."""
