"""What our code is measured against."""
