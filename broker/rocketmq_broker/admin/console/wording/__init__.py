"""Translates the console. It has a catalogue for each language except English, and a switch between languages."""
