"""What Tidemark costs: one runner (`make bench`), fixed seeds, every answer checked, figures kept with machine and
commit.
"""
