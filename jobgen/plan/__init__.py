"""Resolution of a specification: resources, launch, survival, steps and sweeps. It has no side effects."""
