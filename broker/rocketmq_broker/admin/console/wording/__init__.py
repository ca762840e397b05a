"""The console's words in the visitor's language: a catalogue for each language but English, and the switch between them."""
