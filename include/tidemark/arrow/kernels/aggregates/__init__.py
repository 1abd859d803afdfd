"""Aggregates of ranges of rows: of groups, and of windows (ranges.py says how)."""
