"""Windows by queries: the kinds that lie where rows are, in time and by bands, what is late for them and what they tell
of themselves."""
