"""Lookup of IP addresses, names and packets, in batches by numpy and Arrow."""

from os import stat
from typing import Any

from ._wirespeed import Array, Classifier, NameTable, Table, Vrps, __version__
from .errors import DefectError, Error, FileError, InputError, LimitError, StateError

__all__ = [
    "Array",
    "Classifier",
    "DefectError",
    "Error",
    "FileError",
    "InputError",
    "LimitError",
    "NameTable",
    "StateError",
    "Table",
    "Vrps",
    "__version__",
]


def _open(table: Any, path: str, options: dict[str, Any], stamp: tuple[int, int] | None = None) -> Any:
    """Open an image again: what pickle calls."""
    _check(path, stamp)
    return table.open(path, **options)


def _from_file(table: Any, path: str, options: dict[str, Any], stamp: tuple[int, int] | None = None) -> Any:
    """Read a file again: what pickle calls."""
    _check(path, stamp)
    return table.from_file(path, **options)


def _check(path: str, stamp: tuple[int, int] | None) -> None:
    """Refuse a file whose size or time of change is not that of the table that was pickled."""
    if stamp is None:
        return
    found = stat(path)
    if (found.st_size, found.st_mtime_ns) != stamp:
        raise StateError(f"{path} has changed since the table was pickled: pickle it again")
