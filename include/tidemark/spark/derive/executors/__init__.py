"""Computations by executors that read the input themselves: by ranges of its key."""
