"""Kernels on Arrow tables: decode, merge, resolve, inspect, read. No JVM; executors and notebooks run the same code."""
