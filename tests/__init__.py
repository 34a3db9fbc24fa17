"""The tests; a package, so that they can share modules as `tests.<module>`."""
