"""The valid name nearest to a wrong one, for the refusals of this room."""

from tidemark.model.nearest import nearest, similar

__all__ = ["nearest", "similar"]
