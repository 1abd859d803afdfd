"""Parts, the Parquet files of a batch: written within bounds, read by row group, looked up by key."""
