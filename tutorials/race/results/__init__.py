"""The results of the race: figures, on file, in tables and as a picture."""
