"""The results of the race: figures, files, tables and a picture."""
