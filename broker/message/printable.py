"""Text of others on our screens and in our logs."""


def printable(text: str) -> str:
    """The text without what would begin a new line, or tell a terminal to do something."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
