"""The resources of a job: nodes, cores, devices, and the launch method that uses them."""
