"""`make up`: everything that the demo runs, and the console, until Ctrl-C."""
