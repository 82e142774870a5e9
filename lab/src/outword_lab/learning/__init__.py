"""What is learned with a frozen encoder: prompts, and a text tower that says no."""
