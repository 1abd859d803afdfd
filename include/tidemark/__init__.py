"""Tidemark keeps a changing dataset exact: files of changes become a durable collection of updates on Parquet."""

__version__ = "0.1.0"
