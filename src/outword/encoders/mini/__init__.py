"""The embedded encoder, which works offline."""
