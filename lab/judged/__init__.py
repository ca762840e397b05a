"""Runs the shop as processes with faults, and has Porcupine judge the history: `python -m lab.judged --help`."""
