"""The tests of the state log again, on S3."""

from __future__ import annotations

import pytest

from pure.storage.test_log import *  # noqa: F403

pytestmark = pytest.mark.s3
