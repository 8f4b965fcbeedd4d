"""``jobgen check``: reads batch scripts, ours and anyone's, and says what will go wrong."""
