"""Words in: class names, prompts, and the corpora that wild words come from."""
