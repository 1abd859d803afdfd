"""SQL over the collections of a root."""
