"""One machine is not enough: the same work on a cluster."""
