"""``jobgen report``: writes one HTML page about one or more runs; it reads only run directories."""
