"""Tables by ADBC, whatever is written in their columns."""
