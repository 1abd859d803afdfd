"""Conditions on one row: one tree (tree.py), the text that people write (text.py), and what follows (bounds.py)."""
