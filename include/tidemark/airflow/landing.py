"""Where a run's files may be: whoever triggers a run says, and the deployment bounds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.airflow import settings
from tidemark.errors import InvalidUsage

if TYPE_CHECKING:
    from airflow.sdk import Param

_S3 = "s3://"


def landing_of_run(asked: object, own: str | None = None) -> str:
    """The landing of a run whose param `landing` is `asked` (None or empty: the collection's `own`, else
    TIDEMARK_LANDING).

    Whoever may trigger a run may not read by it whatever the workers can: it must be in the collection's own landing,
    in TIDEMARK_LANDING or in one of TIDEMARK_LANDINGS, links and `..` followed. Raises InvalidUsage where it does not.
    """
    given = own or settings.landing()
    if asked is None or asked == "":
        return given
    if not isinstance(asked, str) or "\0" in asked:
        raise InvalidUsage(f"param landing is {asked!r}; it must be a folder or s3://bucket/prefix")
    allowed = [*dict.fromkeys([given, settings.landing(), *settings.landings()])]
    landing = _plain(asked)
    if any(_within(landing, root) for root in allowed):
        return landing
    raise InvalidUsage(
        f"param landing is {asked!r}, which is not within {_listed(allowed)}; "
        "move the files there, or let the deployment name its folder in TIDEMARK_LANDINGS"
    )


def landing_param() -> Param:
    """The param of a run by which whoever triggers it says where its files are."""
    from airflow.sdk import Param

    return Param(
        None,
        type=["null", "string"],
        title="landing",
        description_md="Where this run's files are: a folder within TIDEMARK_LANDING or one of TIDEMARK_LANDINGS.",
    )


def _plain(path: str) -> str:
    """A path as the workers open it: absolute, or below an s3 bucket. InvalidUsage for anything else."""
    if path.startswith(_S3):
        if {".", ".."} & set(path.removeprefix(_S3).split("/")):
            raise InvalidUsage(f"param landing is {path!r}; write it without . and ..")
        return path.rstrip("/")
    scheme, separator, _ = path.partition("://")
    if separator and scheme.isalnum():
        raise InvalidUsage(f"param landing is {path!r}; write a folder as /path/of/it, a bucket as s3://bucket/prefix")
    return os.path.abspath(path)  # noqa: PTH100 - links keep their name, which is part of the files' identity


def _within(path: str, root: str) -> bool:
    if path.startswith(_S3) or root.startswith(_S3):
        return f"{path}/".startswith(f"{root.rstrip('/')}/")
    real, real_root = os.path.realpath(path), os.path.realpath(os.path.expanduser(root))  # noqa: PTH111
    return os.path.commonpath([real, real_root]) == real_root


def _listed(roots: Sequence[str]) -> str:
    return roots[0] if len(roots) == 1 else f"{', '.join(roots[:-1])} or {roots[-1]}"
