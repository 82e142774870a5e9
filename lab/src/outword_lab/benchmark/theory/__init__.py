"""The paper's Theorem 2, measured."""
