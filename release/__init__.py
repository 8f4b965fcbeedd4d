"""What a release has beside the wheel and the source distribution."""
