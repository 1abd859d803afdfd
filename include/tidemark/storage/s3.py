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

from tidemark.errors import InvalidUsage
from tidemark.storage.s3_output import S3Output
from tidemark.storage.store import AlreadyExists, Indeterminate, Missing, ObjectInfo, Unavailable, checked_key

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs

_TAKEN = {"PreconditionFailed", "412"}
_RACING = {"ConditionalRequestConflict", "409", "OperationAborted"}
_ABSENT = {"NoSuchKey", "NoSuchUpload", "404", "NotFound"}
_WRONG = {"NoSuchBucket", "AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "401"}
_BUSY = {"SlowDown", "503", "Throttling", "RequestLimitExceeded", "TooManyRequests", "429"}


class S3Store:
    """Objects below `s3://bucket/prefix`. Credentials, region and endpoint come from the AWS environment.

    Objects are written through boto3, which can create conditionally and give up an upload; Parquet is read through
    Arrow's own S3 file system, in ranges, without further jars.
    """

    def __init__(self, url: str) -> None:
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
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"),
            config=Config(retries={"max_attempts": 5, "mode": "standard"}, connect_timeout=10, read_timeout=60),
        )

    @cached_property
    def files(self) -> pyarrow.fs.FileSystem:
        """Arrow's S3 file system for the same endpoint and credentials."""
        from pyarrow.fs import S3FileSystem

        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if not endpoint:
            return S3FileSystem()
        pieces = urlsplit(endpoint)
        return S3FileSystem(
            endpoint_override=pieces.netloc,
            scheme=pieces.scheme,
            region=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
            allow_bucket_creation=False,
        )

    def create(self, key: str, data: bytes) -> None:
        with _translated(key, writing=True):
            self.client.put_object(Bucket=self.bucket, Key=self._key(key), Body=data, IfNoneMatch="*")

    def read(self, key: str) -> bytes:
        with _translated(key):
            answer = self.client.get_object(Bucket=self.bucket, Key=self._key(key))
            data = cast(bytes, answer["Body"].read())
            if len(data) != answer["ContentLength"]:
                raise Unavailable(f"{key}: got {len(data)} of {answer['ContentLength']} bytes")
            return data

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
        with suppress(Missing), _translated(unfinished.key):
            self.client.abort_multipart_upload(
                Bucket=self.bucket, Key=self._key(unfinished.key), UploadId=unfinished.token
            )

    def open_input(self, key: str) -> pa.NativeFile:
        try:
            return self.files.open_input_file(f"{self.bucket}/{self._key(key)}")
        except FileNotFoundError:
            raise Missing(key) from None
        except OSError as error:
            raise Unavailable(f"{key}: {error}") from error

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        output = _Sink(self.client, self.bucket, self._key(key))
        try:
            yield cast(BinaryIO, output)
        except BaseException:
            # What cannot be given up stays an unfinished upload, which a bucket's lifecycle rule removes.
            with suppress(Exception):
                output.abort()
            raise
        with _translated(key, writing=True):
            output.complete()

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{checked_key(key)}" if self.prefix else checked_key(key)


class _Sink(S3Output):
    """An output whose failures midway are a store's: nothing has appeared yet."""

    def write(self, data: Any) -> int:
        with _translated(str(self._target["Key"])):
            return super().write(data)


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
        if code in _WRONG:
            raise InvalidUsage(
                f"S3 refused {key}: {code} {error.response['Error'].get('Message', '')}".strip()
            ) from None
        if code in _BUSY:
            raise Unavailable(f"{key}: {code}") from error
        if writing or code in _RACING:
            raise Indeterminate(f"{key}: {code}") from error
        raise Unavailable(f"{key}: {code}") from error
    except (BotoCoreError, io.UnsupportedOperation, ConnectionError, TimeoutError) as error:
        raise (Indeterminate if writing else Unavailable)(f"{key}: {error}") from error
