"""Sites: the requirements of a cluster, in a TOML file each."""
