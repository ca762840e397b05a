"""Reports the results of the comparison as figures, JSON, tables and a picture."""
