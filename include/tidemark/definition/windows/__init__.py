"""Definitions by windows, compiled to what executors compute."""
