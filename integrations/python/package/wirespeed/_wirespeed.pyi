"""Types of the compiled module. Addresses, names and numbers come as one object, a list, numpy or Arrow.

A call that fails changes nothing, and raises a subclass of `wirespeed.Error`: `InputError` for a value that is not
valid, with its element, `FileError` for a file, `LimitError` over a cap of memory or a limit of an engine, and
`StateError` where the table does not allow the call. An object of a wrong type, such as a masked array of numpy, raises
`TypeError`, and a missing key of the methods of a dictionary `KeyError`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, final, overload

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Classifier", "NameTable", "Table", "Vrps", "__version__"]
__version__: str

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

_Arrow: TypeAlias = _ArrowArray | _ArrowStream
_Address: TypeAlias = str | IPv4Address | IPv6Address
_Addresses: TypeAlias = list[str] | list[str | None] | list[_Address | None] | tuple[_Address | None, ...]
_Prefix: TypeAlias = str | IPv4Network | IPv6Network
_Texts: TypeAlias = list[str] | list[str | None] | tuple[str | None, ...]
_Integers: TypeAlias = list[int] | list[int | None] | tuple[int | None, ...]
_Path: TypeAlias = str | PathLike[str]
_File: TypeAlias = _Path | tuple[_Path, list[str]]
_Value: TypeAlias = int | str
_Prefixes: TypeAlias = list[str] | list[str | None] | list[_Prefix | None] | tuple[_Prefix | None, ...]
_Origin: TypeAlias = int | str
_Origins: TypeAlias = Sequence[_Origin | None] | npt.NDArray[Any] | _Arrow
_State: TypeAlias = Literal["valid", "invalid", "not-found"]
_Errors: TypeAlias = Literal["raise", "null"]
_Form: TypeAlias = Literal["names", "domains", "urls", "ndn"]
_List: TypeAlias = Literal["hosts", "adblock", "dnsmasq", "rpz", "psl"]
_Default = TypeVar("_Default")

@final
class Array:
    """Array of Arrow: `pyarrow.array`, `polars.Series` and others take it without a copy."""

    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __len__(self) -> int: ...
    def to_pylist(self) -> list[Any]: ...

@final
class Table:
    """Table of IPv4 and IPv6 prefixes, live: it changes while other threads look up.

    Values are numbers from 1, or texts (labels), which get numbers. An answer for no match is null in Arrow, None in
    a list or for one address, and 0 in numpy.
    """

    def __new__(
        cls,
        routes: Mapping[Any, _Value] | Iterable[tuple[_Prefix, _Value]] | None = None,
        *,
        engine: str | None = None,
        prefix_lookups: bool = False,
        memory_cap: int | None = None,
    ) -> Table: ...
    @classmethod
    def open(cls, path: _Path) -> Table: ...
    @classmethod
    def from_file(
        cls,
        path: _Path,
        format: str | None = None,
        *,
        columns: list[str] | None = None,
        prefix_columns: str | tuple[str, str] | None = None,
        range_columns: tuple[str, str] | None = None,
        address_numbers: Literal[4, 6] | None = None,
        peer: int | str | IPv4Address | IPv6Address | None = None,
        vrf: str | None = None,
        set: str | None = None,
        origins: bool = False,
        mask_host_bits: bool = False,
        lenient: bool = False,
        engine: str | None = None,
        prefix_lookups: bool = False,
        memory_cap: int | None = None,
    ) -> Table: ...
    @overload
    @classmethod
    def from_files(
        cls,
        sources: Mapping[str, _File],
        *,
        origins: bool = False,
        mask_host_bits: bool = False,
        lenient: bool = False,
        engine: str | None = None,
        prefix_lookups: bool = False,
        memory_cap: int | None = None,
    ) -> Table: ...
    @overload
    @classmethod
    def from_files(
        cls,
        sources: Iterable[tuple[str, _File]],
        *,
        origins: bool = False,
        mask_host_bits: bool = False,
        lenient: bool = False,
        engine: str | None = None,
        prefix_lookups: bool = False,
        memory_cap: int | None = None,
    ) -> Table: ...
    @overload
    def lookup(self, addresses: _Address, *, threads: int = 1, errors: _Errors = "raise") -> int | None: ...
    @overload
    def lookup(self, addresses: _Addresses, *, threads: int = 1, errors: _Errors = "raise") -> list[int | None]: ...
    @overload
    def lookup(
        self, addresses: npt.NDArray[Any], *, threads: int = 1, errors: _Errors = "raise"
    ) -> npt.NDArray[np.uint32]: ...
    @overload
    def lookup(self, addresses: _Arrow, *, threads: int = 1, errors: _Errors = "raise") -> Array: ...
    @overload
    def lookup_labels(self, addresses: _Address, *, field: str | None = None, threads: int = 1, errors: _Errors = "raise") -> str | None: ...
    @overload
    def lookup_labels(
        self, addresses: _Addresses, *, field: str | None = None, threads: int = 1, errors: _Errors = "raise"
    ) -> list[str | None]: ...
    @overload
    def lookup_labels(
        self, addresses: npt.NDArray[Any], *, field: str | None = None, threads: int = 1, errors: _Errors = "raise"
    ) -> npt.NDArray[np.object_]: ...
    @overload
    def lookup_labels(self, addresses: _Arrow, *, field: str | None = None, threads: int = 1, errors: _Errors = "raise") -> Array: ...
    @overload
    def lookup_lengths(
        self, addresses: _Address, *, threads: int = 1, errors: _Errors = "raise"
    ) -> tuple[int | None, int | None]: ...
    @overload
    def lookup_lengths(
        self, addresses: _Addresses, *, threads: int = 1, errors: _Errors = "raise"
    ) -> tuple[list[int | None], list[int | None]]: ...
    @overload
    def lookup_lengths(
        self, addresses: npt.NDArray[Any], *, threads: int = 1, errors: _Errors = "raise"
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]: ...
    @overload
    def lookup_lengths(
        self, addresses: _Arrow, *, threads: int = 1, errors: _Errors = "raise"
    ) -> tuple[Array, Array]: ...
    @overload
    def lookup_prefix(self, addresses: _Address, *, threads: int = 1, errors: _Errors = "raise") -> str | None: ...
    @overload
    def lookup_prefix(
        self, addresses: _Addresses, *, threads: int = 1, errors: _Errors = "raise"
    ) -> list[str | None]: ...
    @overload
    def lookup_prefix(
        self, addresses: npt.NDArray[Any], *, threads: int = 1, errors: _Errors = "raise"
    ) -> npt.NDArray[np.object_]: ...
    @overload
    def lookup_prefix(self, addresses: _Arrow, *, threads: int = 1, errors: _Errors = "raise") -> Array: ...
    def lookup_all(self, address: _Address) -> list[tuple[str, _Value]]: ...
    def insert(self, prefix: _Prefix, value: _Value) -> None: ...
    def withdraw(self, prefix: _Prefix) -> bool: ...
    def apply(self, changes: Mapping[Any, _Value | None] | Iterable[tuple[_Prefix, _Value | None]]) -> int: ...
    def load(self, path: _Path) -> None: ...
    def save(self, path: _Path) -> None: ...
    @property
    def labels(self) -> dict[int, str]: ...
    def label(self, number: int) -> str | None: ...
    def forget_labels(self) -> None: ...
    @property
    def skipped(self) -> dict[str, int]: ...
    @property
    def engines(self) -> tuple[str, str]: ...
    @property
    def memory_usage(self) -> int: ...
    @overload
    def get(self, prefix: _Prefix) -> _Value | None: ...
    @overload
    def get(self, prefix: _Prefix, default: _Default) -> _Value | _Default: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[_Value]: ...
    def items(self) -> list[tuple[str, _Value]]: ...
    def __len__(self) -> int: ...
    def __contains__(self, prefix: _Prefix, /) -> bool: ...
    def __getitem__(self, prefix: _Prefix, /) -> _Value: ...
    def __setitem__(self, prefix: _Prefix, value: _Value, /) -> None: ...
    def __delitem__(self, prefix: _Prefix, /) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class NameTable:
    """Table of names, live. The longest prefix of components wins. A list of domains has scopes and exceptions, and takes
    no changes.

    `form` says how names are written: "domains" (www.example.com), "urls", "names" (/com/example) or "ndn". Values and
    answers are as in `Table`.
    """

    def __new__(
        cls,
        names: Mapping[str, _Value] | Iterable[tuple[str, _Value]] | None = None,
        *,
        form: _Form = "domains",
        engine: str | None = None,
        memory_cap: int | None = None,
    ) -> NameTable: ...
    @classmethod
    def open(cls, path: _Path, *, form: _Form = "domains") -> NameTable: ...
    @classmethod
    def from_file(
        cls,
        path: _Path,
        format: _List | None = None,
        *,
        form: _Form = "domains",
        columns: list[str] | None = None,
        name_column: str | None = None,
        icann: bool = False,
        lenient: bool = False,
        engine: str | None = None,
        memory_cap: int | None = None,
    ) -> NameTable: ...
    @overload
    def lookup(self, names: str, *, threads: int = 1, errors: _Errors = "raise") -> int | None: ...
    @overload
    def lookup(self, names: _Texts, *, threads: int = 1, errors: _Errors = "raise") -> list[int | None]: ...
    @overload
    def lookup(self, names: _Arrow, *, threads: int = 1, errors: _Errors = "raise") -> Array: ...
    @overload
    def lookup_labels(self, names: str, *, field: str | None = None, threads: int = 1, errors: _Errors = "raise") -> str | None: ...
    @overload
    def lookup_labels(self, names: _Texts, *, field: str | None = None, threads: int = 1, errors: _Errors = "raise") -> list[str | None]: ...
    @overload
    def lookup_labels(self, names: _Arrow, *, field: str | None = None, threads: int = 1, errors: _Errors = "raise") -> Array: ...
    @overload
    def registrable(self, domains: str, *, errors: _Errors = "raise") -> str | None: ...
    @overload
    def registrable(self, domains: _Texts, *, errors: _Errors = "raise") -> list[str | None]: ...
    @overload
    def registrable(self, domains: _Arrow, *, errors: _Errors = "raise") -> Array: ...
    def insert(self, name: str, value: _Value) -> None: ...
    def withdraw(self, name: str) -> bool: ...
    def apply(self, changes: Mapping[str, _Value | None] | Iterable[tuple[str, _Value | None]]) -> int: ...
    def load(self, path: _Path) -> None: ...
    def save(self, path: _Path) -> None: ...
    @property
    def labels(self) -> dict[int, str]: ...
    def label(self, number: int) -> str | None: ...
    def forget_labels(self) -> None: ...
    @property
    def skipped(self) -> dict[str, int]: ...
    @property
    def form(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def memory_usage(self) -> int: ...
    @overload
    def get(self, name: str) -> _Value | None: ...
    @overload
    def get(self, name: str, default: _Default) -> _Value | _Default: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[_Value]: ...
    def items(self) -> list[tuple[str, _Value]]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> _Value: ...
    def __setitem__(self, name: str, value: _Value, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Classifier:
    """Set of rules over 5-tuples, live. The matching rule of the highest priority wins, among equals the first one.

    Rules have numbers from 1. The fields of packets are columns of one length: addresses as in `Table`, numbers as
    integers of Python, numpy or Arrow. Answers are of the kind of `src`.
    """

    def __new__(
        cls,
        rules: Iterable[str] | None = None,
        *,
        family: Literal[4, 6] = 4,
        engine: str | None = None,
        memory_cap: int | None = None,
    ) -> Classifier: ...
    @classmethod
    def open(cls, path: _Path) -> Classifier: ...
    @classmethod
    def from_file(
        cls,
        path: _Path,
        format: str | None = None,
        *,
        family: Literal[4, 6] = 4,
        assume: list[str] | None = None,
        chain: str | None = None,
        rule_table: str | None = None,
        engine: str | None = None,
        memory_cap: int | None = None,
    ) -> Classifier: ...
    @overload
    def lookup(
        self,
        src: _Address,
        dst: _Address,
        proto: int,
        sport: int,
        dport: int,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> int | None: ...
    @overload
    def lookup(
        self,
        src: _Addresses,
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> list[int | None]: ...
    @overload
    def lookup(
        self,
        src: npt.NDArray[Any],
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> npt.NDArray[np.uint32]: ...
    @overload
    def lookup(
        self,
        src: _Arrow,
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> Array: ...
    @overload
    def lookup_actions(
        self,
        src: _Address,
        dst: _Address,
        proto: int,
        sport: int,
        dport: int,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> int | None: ...
    @overload
    def lookup_actions(
        self,
        src: _Addresses,
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> list[int | None]: ...
    @overload
    def lookup_actions(
        self,
        src: npt.NDArray[Any],
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> npt.NDArray[np.uint32]: ...
    @overload
    def lookup_actions(
        self,
        src: _Arrow,
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> Array: ...
    @overload
    def lookup_labels(
        self,
        src: _Address,
        dst: _Address,
        proto: int,
        sport: int,
        dport: int,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> str | None: ...
    @overload
    def lookup_labels(
        self,
        src: _Addresses,
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> list[str | None]: ...
    @overload
    def lookup_labels(
        self,
        src: npt.NDArray[Any],
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> npt.NDArray[np.object_]: ...
    @overload
    def lookup_labels(
        self,
        src: _Arrow,
        dst: _Addresses | npt.NDArray[Any] | _Arrow,
        proto: _Integers | npt.NDArray[Any] | _Arrow,
        sport: _Integers | npt.NDArray[Any] | _Arrow,
        dport: _Integers | npt.NDArray[Any] | _Arrow,
        *,
        threads: int = 1,
        errors: _Errors = "raise",
    ) -> Array: ...
    def insert(self, rule: str, label: str | None = None) -> int: ...
    def remove(self, number: int) -> bool: ...
    def apply(self, changes: Iterable[tuple[int | None, str | None]]) -> int: ...
    def load(self, path: _Path) -> None: ...
    def save(self, path: _Path) -> None: ...
    @property
    def rules(self) -> dict[int, str]: ...
    @property
    def labels(self) -> dict[int, str]: ...
    def label(self, action: int) -> str | None: ...
    def forget_labels(self) -> None: ...
    @property
    def family(self) -> int: ...
    @property
    def engine(self) -> str: ...
    @property
    def memory_usage(self) -> int: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Vrps:
    """Validated payloads of the RPKI: which AS may announce which prefixes. They stay as they are.

    Payloads are tuples of a prefix, the longest length that may be announced (None for that of the prefix), and an AS
    number.
    """

    def __new__(cls, vrps: Iterable[tuple[_Prefix, int | None, int]] | None = None) -> Vrps: ...
    @classmethod
    def from_file(cls, path: _Path, *, lenient: bool = False) -> Vrps: ...
    @overload
    def rov(self, prefixes: _Prefix, origins: _Origin, *, errors: _Errors = "raise") -> _State | None: ...
    @overload
    def rov(self, prefixes: _Prefixes, origins: _Origins, *, errors: _Errors = "raise") -> list[_State | None]: ...
    @overload
    def rov(self, prefixes: _Arrow, origins: _Origins, *, errors: _Errors = "raise") -> Array: ...
    @property
    def skipped(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
