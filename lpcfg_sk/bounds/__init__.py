"""Sample-size and error bounds of the papers."""
