"""Pure values and laws. Imports the standard library and `tidemark.errors` only."""
