"""The pages of windows that were drawn last. The same version shows the same, so it is read and drawn once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from tidemark.airflow.web.choice import Choice
from tidemark.airflow.web.page import Page
from tidemark.api.pinned import Pinned

Key = tuple[str, str, str, Choice]
"""Root, collection, digest of its version, and what of it is shown."""


@dataclass
class RecentPages:
    """The `most` pages that were asked for last. Used by one thread at a time."""

    most: int
    _pages: OrderedDict[Key, Page] = field(default_factory=OrderedDict)

    def page(self, pinned: Pinned, choice: Choice, draw: Callable[[], Page]) -> Page:
        """The page of a choice at a version: kept, or drawn now. What `draw` raises is not kept."""
        key = (pinned.root, pinned.name, pinned.head.sha256, choice)
        page = self._pages.get(key) or draw()
        self._pages[key] = page
        self._pages.move_to_end(key)
        while len(self._pages) > self.most:
            self._pages.popitem(last=False)
        return page
