"""`make up`: runs all processes of the demo and the console until Ctrl-C."""
