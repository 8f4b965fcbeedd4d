"""What each rank gets from the scheduler, the script and the launcher, and what its program needs."""
