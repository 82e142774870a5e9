"""The detector: how it is made, what it says of a photo, and its files."""
