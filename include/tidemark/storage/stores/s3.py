"""An object store on S3 or anything that speaks its protocol, with conditional writes (`If-None-Match: *`)."""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit

from tidemark.errors import InvalidUsage, require
from tidemark.storage.stores.s3_input import S3Input
from tidemark.storage.stores.s3_output import S3Output
from tidemark.storage.stores.store import (
    AlreadyExists,
    Conflict,
    Indeterminate,
    Missing,
    ObjectInfo,
    Unavailable,
    Unsupported,
    Unwritable,
    checked_key,
)

if TYPE_CHECKING:
    import pyarrow as pa

SILENCE = 60.0
"""Seconds without a byte after which a request counts as lost."""
IMPATIENCE = 0.001
"""Seconds after which a request is given up whose answer nobody is to hear."""
ANSWERS = 4
"""Answers whose bodies end early before a read gives up."""

_CONFLICT = {"ConditionalRequestConflict", "OperationAborted", "409"}
_UNSUPPORTED = {"NotImplemented", "501"}
_TAKEN = {"PreconditionFailed", "412"}
_ABSENT = {"NoSuchKey", "404", "NotFound"}
_WRONG = {"NoSuchBucket", "AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "401"}
_BUSY = {"SlowDown", "503", "Throttling", "RequestLimitExceeded", "TooManyRequests", "429"}

_FULL = {"XMinioStorageFull", "QuotaExceeded", "InsufficientStorage", "507"}
"""What servers of this protocol answer where no space is left; S3 itself never is full."""


class S3Store:
    """Objects below `s3://bucket/prefix`. Credentials, region and endpoint come from the AWS environment.

    All goes through boto3, which can create conditionally, give up an upload, and says what became of a request;
    Parquet is read in ranges (s3_input.py), without further jars.
    """

    def __init__(self, url: str) -> None:
        require("boto3", "s3")
        pieces = urlsplit(url)
        if pieces.scheme != "s3" or not pieces.netloc:
            raise InvalidUsage(f"{url!r} is not s3://bucket/prefix")
        self.bucket = pieces.netloc
        self.prefix = pieces.path.strip("/")
        self.url = f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def __getstate__(self) -> dict[str, str]:
        return {"url": self.url}

    def __setstate__(self, state: dict[str, str]) -> None:
        self.__init__(state["url"])  # type: ignore[misc]

    @cached_property
    def client(self) -> Any:
        """The boto3 client: few retries of its own, because a retried create is answered by us with care."""
        client = _client(attempts=6, silence=SILENCE)
        client.meta.events.register("needs-retry.s3", _remember_doubt)
        return client

    @property
    def address(self) -> str:
        return f"{self.url} at {self.client.meta.endpoint_url}"

    def another(self) -> S3Store:
        return S3Store(self.url)

    def create_unheard(self, key: str, data: bytes) -> None:
        client = _client(attempts=1, silence=IMPATIENCE)
        try:
            with suppress(AlreadyExists, Indeterminate, Unavailable), _translated(key, writing=True):
                client.put_object(Bucket=self.bucket, Key=self._key(key), Body=data, IfNoneMatch="*")
        finally:
            client.close()

    def create(self, key: str, data: bytes) -> None:
        with _translated(key, writing=True):
            self.client.put_object(Bucket=self.bucket, Key=self._key(key), Body=data, IfNoneMatch="*")

    def read(self, key: str) -> bytes:
        return self._body(key)

    def stat(self, key: str) -> ObjectInfo | None:
        try:
            with _translated(key):
                answer = self.client.head_object(Bucket=self.bucket, Key=self._key(key))
        except Missing:
            return None
        return ObjectInfo(key, answer["ContentLength"], answer["ETag"].strip('"'), answer["LastModified"].timestamp())

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        lead = len(self.prefix) + 1 if self.prefix else 0
        with _translated(prefix):
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self._key(prefix))
            for page in pages:
                for item in page.get("Contents", ()):
                    modified = item["LastModified"].timestamp()
                    yield ObjectInfo(item["Key"][lead:], item["Size"], item["ETag"].strip('"'), modified)

    def keys(self, prefix: str) -> builtins.list[str]:
        return [info.key for info in self.list(prefix)]

    def folders(self, prefix: str) -> builtins.list[str]:
        full = self._key(prefix)
        with _translated(prefix):
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=full, Delimiter="/"
            )
            found = [common["Prefix"] for page in pages for common in page.get("CommonPrefixes", ())]
        return sorted(name.removeprefix(full).rstrip("/") for name in found)

    def delete(self, key: str) -> None:
        with _translated(key):
            self.client.delete_object(Bucket=self.bucket, Key=self._key(key))

    def unfinished(self) -> Iterator[ObjectInfo]:
        lead = len(self.prefix) + 1 if self.prefix else 0
        with _translated("uploads"):
            pages = self.client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.bucket, Prefix=self.prefix + "/" if self.prefix else ""
            )
            for page in pages:
                for item in page.get("Uploads", ()):
                    yield ObjectInfo(item["Key"][lead:], 0, item["UploadId"], item["Initiated"].timestamp())

    def discard(self, unfinished: ObjectInfo) -> None:
        with suppress(_UploadGone), _translated(unfinished.key):
            self.client.abort_multipart_upload(
                Bucket=self.bucket, Key=self._key(unfinished.key), UploadId=unfinished.token
            )

    def open_input(self, key: str) -> pa.NativeFile:
        import pyarrow as pa

        info = self.stat(key)
        if info is None:
            raise Missing(key)
        return pa.PythonFile(S3Input(lambda start, stop: self._body(key, start, stop), info.bytes), mode="r")

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        output = _Sink(self.client, self.bucket, self._key(key))
        try:
            yield cast(BinaryIO, output)
        except BaseException:
            # What cannot be given up stays an unfinished upload, which the collector removes.
            with suppress(Exception):
                output.abort()
            raise
        try:
            with _translated(key, writing=True):
                output.complete()
        except _UploadGone:
            # Complete already, if the reply to that was lost; else somebody gave it up.
            info = self.stat(key)
            if info is None or info.bytes != output.bytes:
                raise

    def _body(self, key: str, start: int | None = None, stop: int | None = None) -> bytes:
        """An object's bytes, or a range of them; never fewer.

        The client tries requests again, but not answers whose body ends early. Reads change nothing, so they are.
        """
        part = {} if start is None or stop is None else {"Range": f"bytes={start}-{stop - 1}"}
        for left in reversed(range(ANSWERS)):
            with _translated(key):
                answer = self.client.get_object(Bucket=self.bucket, Key=self._key(key), **part)
            wanted = answer["ContentLength"] if start is None or stop is None else stop - start
            try:
                with _translated(key):
                    data = cast(bytes, answer["Body"].read())
                if len(data) == wanted:
                    return data
                raise Unavailable(f"{key}: got {len(data)} of {wanted} bytes")
            except Unavailable:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{checked_key(key)}" if self.prefix else checked_key(key)


def _client(*, attempts: int, silence: float) -> Any:
    """A client whose requests are made so often at most, and count as lost after so many seconds without a byte."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"),
        config=Config(
            retries={"total_max_attempts": attempts, "mode": "standard"}, connect_timeout=10, read_timeout=silence
        ),
    )


class _UploadGone(Unavailable):
    """There is no such upload: it became an object, or was given up."""


class _Sink(S3Output):
    """An output whose failures midway are a store's: nothing has appeared yet."""

    def write(self, data: Any) -> int:
        with _translated(str(self._target["Key"])):
            return super().write(data)


_DOUBT = "EarlierRequestInDoubt"


def _remember_doubt(request_dict: dict[str, Any], response: Any = None, **_: Any) -> None:
    """Note on an answer that an earlier request of the same call may have had its effect.

    The client reports its last request only. One that was refused says nothing about those whose reply never came.
    """
    context = request_dict["context"]
    if response is None or response[0].status_code in (500, 502, 504):
        context[_DOUBT] = True
    elif context.get(_DOUBT):
        response[1].setdefault("ResponseMetadata", {})[_DOUBT] = True


@contextmanager
def _translated(key: str, *, writing: bool = False) -> Iterator[None]:
    """Errors of the S3 client as errors of a store; of a write, what is not known to have failed is indeterminate."""
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except NoCredentialsError:
        raise InvalidUsage("no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile") from None
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _TAKEN:
            raise AlreadyExists(key) from None
        if code in _ABSENT:
            raise Missing(key) from None
        if code == "NoSuchUpload":
            raise _UploadGone(f"{key}: the upload is gone; was it left unfinished for long?") from error
        if code in _WRONG:
            raise InvalidUsage(
                f"S3 refused {key}: {code} {error.response['Error'].get('Message', '')}".strip()
            ) from None
        if code in _UNSUPPORTED:
            raise Unsupported(f"the store refused {key}: {code}, it does not know such a request") from None
        doubted = error.response["ResponseMetadata"].get(_DOUBT)
        if code in _CONFLICT and writing and not doubted:
            raise Conflict(f"{key}: {code}") from error
        if code in _FULL and not (writing and doubted):
            raise Unwritable(f"{key}: {code} {error.response['Error'].get('Message', '')}".strip()) from None
        in_doubt = code not in _BUSY or doubted
        raise (Indeterminate if writing and in_doubt else Unavailable)(f"{key}: {code}") from error
    except (BotoCoreError, io.UnsupportedOperation, ConnectionError, TimeoutError) as error:
        raise (Indeterminate if writing else Unavailable)(f"{key}: {error}") from error
