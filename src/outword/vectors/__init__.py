"""Sets of photos and of words as vectors: stores on disk, ID images, mined words."""
