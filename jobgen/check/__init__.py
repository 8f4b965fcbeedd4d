"""``jobgen check``: reports errors in batch scripts, whether or not jobgen has written them."""
