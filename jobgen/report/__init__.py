"""``jobgen report``: one HTML page about one run or several; it reads run directories and nothing else."""
