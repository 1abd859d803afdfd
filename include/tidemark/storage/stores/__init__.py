"""Object stores behind one protocol: local files, S3, memory. The laws they share are in `store`."""
