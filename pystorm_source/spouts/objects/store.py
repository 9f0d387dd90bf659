"""A store of objects, opened, and what its errors mean."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import OptionError, WorldError
from pystorm_source.errors.known_secrets import without_secrets
from pystorm_source.errors.packages import package
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.spouts.objects.options import ObjectsOptions, is_local, local_folder

_STATUS = re.compile(r"status code: (\d{3})")
_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_NO_ANSWER = re.compile(r"HTTP error|error sending|timed? ?out|timeout|connection|error decoding", re.IGNORECASE)
_QUERY = re.compile(r"(?<=[\w/])\?\S*")
_SHOWN = 400
_RETRIES: dict[str, Any] = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
"""Few: the engine asks again, and the driver and a task can be ended meanwhile."""
_PAUSE = 1.0
"""Seconds until a busy store is asked again. Too short: it is kept busy. Too long: rows come late."""


_LONG_RETRIES: dict[str, Any] = {"max_retries": 60, "retry_timeout": timedelta(minutes=3)}
"""For readers that cannot be interrupted."""


def opened(url: str, options: ObjectsOptions, makes_folder: bool = False, is_patient: bool = False) -> Any:
    """The store of this prefix. Raises OptionError if it cannot be one, WorldError if a local folder is not there."""
    store = package("obstore.store", "ObjectsSpout", "objects")
    try:
        if is_local(url):
            folder = local_folder(url)
            if makes_folder:
                os.makedirs(folder, exist_ok=True)
            elif not os.path.isdir(folder):
                raise WorldError(
                    f"the folder {folder!r} is not there: create it, or mount it on the driver and every executor. "
                    f"Given: {url!r}",
                    code="PYSTORM_FILE_UNREADABLE",
                )
            return store.LocalStore(folder)
        settings = options.store_of(url)
        # Mounts of clusters name Hadoop's scheme.
        return store.from_url(
            re.sub("^s3a://", "s3://", url), retry_config=_LONG_RETRIES if is_patient else _RETRIES, **settings
        )
    except WorldError:
        raise
    except Exception as error:
        raise OptionError(
            f"obstore cannot open this store: set objects.config.* (region, endpoint, keys) and objects.client.* by "
            f"obstore's names, or let the environment have them: {_said(error)}. Given: {without_credentials(url)!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None


@contextmanager
def asking(what: str, may_return: bool = True) -> Iterator[None]:
    """Errors of the store as ours: busy is RetryLater, if the caller ``may_return``; refused or no bucket a WorldError.
    An object that is not there stays FileNotFoundError, one that has changed obstore's PreconditionError."""
    from obstore.exceptions import (
        BaseError,
        InvalidPathError,
        PermissionDeniedError,
        PreconditionError,
        UnauthenticatedError,
    )

    try:
        yield
    except (FileNotFoundError, BaseError, PermissionError) as error:
        text = str(error)
        status = int(found[1]) if (found := _STATUS.search(text)) else 0
        is_missing = _NO_BUCKET.search(text) is not None
        is_refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError, PermissionError))
        if isinstance(error, (FileNotFoundError, PreconditionError)) and not is_missing:
            raise
        if isinstance(error, InvalidPathError):
            remedy = (
                "obstore cannot list a prefix with such a name: rename or remove the object. Names are UTF-8 without "
                "control characters, and no part between two slashes is empty, '.' or '..'"
            )
        elif "File system loop" in text:
            remedy = "a symbolic link leads to a folder around it: remove the link"
        elif is_missing:
            remedy = "there is no such bucket or container: create it, or correct the option path"
        elif is_refused or status in (401, 403):
            remedy = (
                "the store refuses access: give the credentials of objects.config.*, or those of the environment, the "
                "right to list and read this prefix"
            )
        elif may_return and (status in (408, 429) or status >= 500 or (not status and _NO_ANSWER.search(text))):
            raise RetryLater(_PAUSE, f"{what}: {_said(error)}") from None
        else:
            remedy = "the store does not answer as it should: check the option path, and objects.config.*"
        raise WorldError(
            f"{remedy}. The store says: {_said(error)}. Given: {what!r}", code="PYSTORM_EXTERNAL_FAILURE"
        ) from None


def _said(error: BaseException) -> str:
    """The first lines of obstore's message, without the debug text that it appends, and without secrets."""
    text = str(error).partition("\n\nDebug source")[0].replace("\n", " ")
    return without_secrets(_QUERY.sub("", text))[:_SHOWN]
