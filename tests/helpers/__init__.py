"""What several tests need: archives, damaged images, references, tiny models, a service."""
