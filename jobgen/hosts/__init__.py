"""Where commands run and files lie: on this machine, or on one that ssh reaches."""
