"""The public door to collections from Python: what `import tidemark` offers. Nothing slow is imported until needed."""
