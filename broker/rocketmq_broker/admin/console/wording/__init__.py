"""Translates the console. The package contains a catalogue for each language except English, and a language switch."""
