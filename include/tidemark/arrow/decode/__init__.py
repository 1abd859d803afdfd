"""Source files to rows: parquet, JSON lines, CSV and Debezium's messages, each value checked against its declared type.

`source` is the door: it knows the formats; a file that is not what it should be is a BadFile, with line and column.
"""
