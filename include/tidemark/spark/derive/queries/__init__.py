"""What Spark computes: projections, selects, joins, and rows that are brought together."""
