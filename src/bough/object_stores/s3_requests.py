"""Signed requests to S3 for what the library does not offer: parts of uploads, and checksums.

The signature (AWS Signature Version 4) covers the checksum of the body, so a store refuses a body
that was damaged on the way.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import random
import re
import ssl
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from bough.model.object_store import StoreCredential
from bough.object_stores.failures import StoreFailed, reason

_ALGORITHM = "AWS4-HMAC-SHA256"
_TIMEOUT_S = 60.0
_TRIES = 6
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,64})</Code>")
#: An error in the body of a response that began with a good status.
_LATE_ERROR = re.compile(rb"<Error[ >]")
_MOST_BYTES = 8 << 20


class Answer(NamedTuple):
    """What a store answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def code(self) -> str:
        """The error code; empty: no error."""
        found = _CODE.search(self.content)
        return found[1].decode() if found else ""

    @property
    def good(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300 and not _LATE_ERROR.search(self.content[:4_096])


class S3Requests:
    """Requests about the objects of one bucket, for any number of threads."""

    def __init__(
        self, endpoint: str, bucket: str, credential: StoreCredential, region: str, virtual: bool
    ) -> None:
        parts = urlsplit(endpoint)
        self._secure = parts.scheme == "https"
        self._host = f"{bucket}.{parts.netloc}" if virtual else parts.netloc
        self._base = parts.path.rstrip("/") + ("" if virtual else f"/{quote(bucket, safe='')}")
        self._credential = credential
        self._region = region
        #: Idle connections.
        self._idle: deque[http.client.HTTPConnection] = deque()

    def ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] | None = None,
        *,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request; retries if the connection breaks or the store is busy.

        Raises StoreFailed if no answer arrives; the caller judges what the answer says.
        """
        path = f"{self._base}/{quote(key, safe='/-_.~')}"
        answer: Answer | None = None
        unreached = False
        for number in range(_TRIES):
            if number:
                time.sleep(random.uniform(0.1, 0.2) * 2**number)  # noqa: S311
            connection = self._take()
            try:
                answer = self._ask_once(
                    connection, method, path, query or {}, content, headers or {}
                )
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise StoreFailed("the certificate of the store is not valid") from None
                unreached = isinstance(error, ConnectionRefusedError)
                continue
            self._idle.append(connection)
            if answer.status < 500 and answer.status != 429:
                return answer
        if answer is None:
            raise StoreFailed(reason(None, "", unreached=unreached))
        return answer

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()

    def _ask_once(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        query: Mapping[str, str],
        content: bytes,
        headers: Mapping[str, str],
    ) -> Answer:
        text = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in sorted(query.items())
        )
        signed = self._sign(method, path, text, content, headers)
        connection.request(method, f"{path}?{text}" if text else path, content or None, signed)
        response = connection.getresponse()
        return Answer(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(_MOST_BYTES),
        )

    def _sign(
        self, method: str, path: str, query: str, content: bytes, headers: Mapping[str, str]
    ) -> dict[str, str]:
        """The headers of a request, with its signature."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        digest = hashlib.sha256(content).hexdigest()
        sent = {name.lower(): value for name, value in headers.items()}
        sent |= {"host": self._host, "x-amz-date": now, "x-amz-content-sha256": digest}
        if self._credential.session_token:
            sent["x-amz-security-token"] = self._credential.session_token
        names = ";".join(sorted(sent))
        lines = "".join(f"{name}:{sent[name].strip()}\n" for name in sorted(sent))
        request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        hashed = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{self._credential.access_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.new(key, f"{_ALGORITHM}\n{now}\n{scope}\n{hashed}".encode(), "sha256")
        sent["authorization"] = (
            f"{_ALGORITHM} Credential={self._credential.access_key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={signature.hexdigest()}"
        )
        return sent

    def _take(self) -> http.client.HTTPConnection:
        """Take an idle connection, or make one."""
        try:
            return self._idle.pop()
        except IndexError:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            return kind(self._host, timeout=_TIMEOUT_S)
