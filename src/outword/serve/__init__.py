"""The HTTP service and its page: bytes in, verdicts out; no maths here."""
