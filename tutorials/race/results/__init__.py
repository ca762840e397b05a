"""Reports the results of the race as figures, files, tables and a picture."""
