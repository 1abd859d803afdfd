"""Object stores and the state log. The only package that knows a storage SDK; only `log.py` lists state versions."""

from tidemark.storage.address import open_store
from tidemark.storage.store import ObjectInfo, ObjectStore

__all__ = ["ObjectInfo", "ObjectStore", "open_store"]
