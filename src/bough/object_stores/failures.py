"""What went wrong with a store, in a sentence that names the URL but never a secret.

Answers of stores can quote requests, so none of their text is passed on: only the status and the
name of the error.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from bough.errors import BoughError

_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>")
_STATUS = re.compile(r"status code: ([0-9]{3})\b|status: ([0-9]{3}),")
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"})
_WRONG_REGION = frozenset({"AuthorizationHeaderMalformed", "PermanentRedirect"})
_WRONG_KEY = frozenset({
    "InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed", "InvalidToken",
    "ExpiredToken", "InvalidAuthenticationInfo",
    "AuthorizationFailure",
})  # fmt: skip
#: How the library says that it does not accept the name of an object.
_BAD_NAME = re.compile(r"InvalidPath|contained empty path segment|illegal character sequence")
#: The library's word for a connection that could not be made.
_UNREACHED = re.compile(r"kind: Connect\b")


class StoreFailed(BoughError):
    """Data could not be read from a store, or written to it."""


class Damaged(StoreFailed):
    """What was read does not match its checksum."""


@contextlib.contextmanager
def telling(url: str, done: str) -> Iterator[None]:
    """Turn errors of the library into one that says what could not be `done`, and why."""
    try:
        yield
    except BoughError:
        raise
    except Exception as error:
        if not _is_of_store(error):
            raise
        # The library's message quotes requests and answers.
        raise StoreFailed(f"{url} could not be {done}: {reason_of(str(error))}") from None


def reason_of(text: str) -> str:
    """Why a request failed, from the text of the library's error."""
    if _BAD_NAME.search(text):
        return "an object there has a name that can be no path, such as one with an empty part"
    code = _CODE.search(text)
    status = _STATUS.search(text)
    number = int(status[1] or status[2]) if status else None
    return reason(number, code[1] if code else "", unreached=bool(_UNREACHED.search(text)))


def reason(status: int | None, code: str, *, unreached: bool = False) -> str:
    """Why a request failed, from the status and the error code that the store answered."""
    named = f" ({code})" if code else ""
    if code in _NO_BUCKET:
        return f"there is no such bucket{named}"
    if code in _WRONG_REGION:
        return f"the bucket is in another region than the credential says{named}"
    if code in _WRONG_KEY or status == 401:
        return f"the store does not know the key of the credential{named}"
    if status == 403:
        return f"the store does not allow it with this credential{named or ' (403)'}"
    if status == 404:
        return f"there is no such bucket or object{named}"
    if status == 412:
        return "it was changed meanwhile"
    if status is not None:
        return f"the store answered {status}{named}"
    if unreached:
        return "the store cannot be reached; is its address right, and does it run?"
    return "the connection to the store broke again and again"


def _is_of_store(error: Exception) -> bool:
    """Whether an error comes from the library, which also raises some of Python's own."""
    module = type(error).__module__
    return module.startswith("obstore") or "Debug source" in str(error)
