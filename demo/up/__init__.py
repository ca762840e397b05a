"""`make up`: all processes of the demo and the console, until Ctrl-C."""
