"""Files of a data set from its address: kept only if their checksum is the registry's."""

from __future__ import annotations

import logging
from pathlib import Path

from daskab.datasets.local import fetched, find
from daskab.datasets.registry import Entry, File
from daskab.errors import DataError, one_line

PATIENCE = 30.0
"""Seconds an address may say nothing."""


def fetch(entry: Entry) -> dict[File, Path]:
    """Every file of a data set; those that are not on this machine yet are downloaded.

    Raises
    ------
    DataError
        If a file has no address, or it does not serve what it should.
    """
    found = find(entry.files)
    for file in entry.files:
        if file not in found:
            if file.url is None:
                raise DataError(f"{entry.name}: {file.name} has no address; put it anywhere under DASKAB_DATA")
            found[file] = _download(file, file.url)
    return {file: found[file] for file in entry.files}


def _download(file: File, url: str) -> Path:
    try:
        import pooch
        from requests import HTTPError, RequestException
    except ImportError:
        raise DataError("fetching needs the package pooch: pip install 'daskab[data]'") from None
    pooch.get_logger().setLevel(logging.WARNING)
    checksum = file.served_sha256 or file.sha256
    try:
        path = pooch.retrieve(
            url,
            known_hash=f"sha256:{checksum}",
            fname=file.name,
            path=fetched(),
            downloader=pooch.HTTPDownloader(timeout=PATIENCE),
        )
    except HTTPError as error:
        raise DataError(f"{url}: {one_line(error).partition(' for url')[0]}") from None
    except RequestException as error:
        raise DataError(
            f"{url}: cannot be reached ({type(error).__name__}); without a network, put {file.name} under DASKAB_DATA"
        ) from None
    except ValueError:
        raise DataError(f"{url}: does not serve what has sha256 {checksum}; nothing of it is kept") from None
    return Path(path)
