"""Methods told apart on photos of yours: a table of all that apply, or the best detector that there is for them."""
