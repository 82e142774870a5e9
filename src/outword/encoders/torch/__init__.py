"""Encoders that run on torch: open_clip's and transformers' models."""
