"""Exceptions of Wirespeed. A call that fails changes nothing."""


class Error(Exception):
    """Base of all exceptions of Wirespeed. Arguments of a wrong type raise `TypeError`."""


class InputError(Error, ValueError):
    """An argument that no call may have: a text that is no address, a prefix with host bits, an unknown engine."""


class FileError(Error, OSError):
    """A file that can't be read or written. The message names file, line and reason."""


class LimitError(Error):
    """A limit of memory or of an engine. The message states the found and the allowed number."""


class StateError(Error):
    """The state of a table that does not allow the call, such as labels where it has numbers."""


class DefectError(Error):
    """A defect of the library. Please report it."""
