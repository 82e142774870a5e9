"""Photos in: safe decoding of untrusted bytes, and the places that photos lie in."""
