"""Object stores and the state log. The only package that knows a storage SDK; only `log/` lists and makes versions."""

from tidemark.storage.stores.address import open_store
from tidemark.storage.stores.store import ObjectInfo, ObjectStore

__all__ = ["ObjectInfo", "ObjectStore", "open_store"]
