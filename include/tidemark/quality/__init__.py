"""Gates: evidence read from the data, Great Expectations suites over it, certificates for the next step."""
