"""The kinds of what a definition computes: how rows become groups, sliding windows and sessions."""
