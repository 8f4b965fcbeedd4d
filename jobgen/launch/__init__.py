"""The launchers of ranks, their MPIs, containers and accelerators, and the program that they start."""
