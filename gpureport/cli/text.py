"""Text for a terminal."""


def printable(text: str) -> str:
    """Return text on one line, without characters that would steer a terminal."""
    spaced = (" " if character.isspace() else character for character in text)
    return "".join(character for character in spaced if character.isprintable())
