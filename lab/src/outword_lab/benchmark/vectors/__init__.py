"""The suite `vectors`: what methods, cuts and words do on a folder of vectors of a real encoder."""
