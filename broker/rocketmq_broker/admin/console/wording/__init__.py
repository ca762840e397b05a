"""Translates the console: a catalogue for each language except English, and the switch between languages."""
