"""Writing an S3 object part by part, so that it appears whole or not at all.

Arrow's own output stream uploads what it has when it is dropped: half an object would appear under its name.
"""

from __future__ import annotations

from typing import Any

PART_BYTES = 16 * 2**20
"""Bytes of one part of an upload; an object up to this size takes one request. S3 allows 10,000 parts of 5 MiB up."""


class S3Output:
    """Collects what is written into parts and uploads them; `complete` makes the object appear, `abort` forgets it."""

    def __init__(self, client: Any, bucket: str, key: str) -> None:
        self._client = client
        self._target = {"Bucket": bucket, "Key": key}
        self._waiting = bytearray()
        self._upload: str | None = None
        self._parts: list[dict[str, Any]] = []
        self.bytes = 0
        self.closed = False

    def write(self, data: Any) -> int:
        """Take all of the bytes."""
        taken = memoryview(data).cast("B")
        self._waiting += taken
        self.bytes += taken.nbytes
        while len(self._waiting) > PART_BYTES:
            self._upload_part(PART_BYTES)
        return taken.nbytes

    def flush(self) -> None:
        """Nothing: the object is durable once complete."""

    def complete(self) -> None:
        """Make the object appear."""
        self.closed = True
        if self._upload is None:
            self._client.put_object(**self._target, Body=bytes(self._waiting))
            return
        self._upload_part(len(self._waiting))
        self._client.complete_multipart_upload(
            **self._target, UploadId=self._upload, MultipartUpload={"Parts": self._parts}
        )

    def abort(self) -> None:
        """Give up what was uploaded."""
        self.closed = True
        if self._upload is not None:
            self._client.abort_multipart_upload(**self._target, UploadId=self._upload)

    def _upload_part(self, size: int) -> None:
        if self._upload is None:
            self._upload = self._client.create_multipart_upload(**self._target)["UploadId"]
        number = len(self._parts) + 1
        body = bytes(self._waiting[:size])
        answer = self._client.upload_part(**self._target, UploadId=self._upload, PartNumber=number, Body=body)
        self._parts.append({"ETag": answer["ETag"], "PartNumber": number})
        del self._waiting[:size]
