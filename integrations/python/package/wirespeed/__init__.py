"""Lookup of IP addresses, names and packets, in batches by numpy and Arrow."""

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


def _open(table: Any, path: str, options: dict[str, Any]) -> Any:
    """Open an image again: what pickle calls."""
    return table.open(path, **options)


def _from_file(table: Any, path: str, options: dict[str, Any]) -> Any:
    """Read a file again: what pickle calls."""
    return table.from_file(path, **options)
