"""Collection files: YAML to `tidemark.model.collection.Collection`, checked field by field."""
