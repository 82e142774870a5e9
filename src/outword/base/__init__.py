"""What every room stands on: files, checks, optional libraries."""
