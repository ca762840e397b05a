"""Checks of a program's first mistakes; each answers with a sentence."""
