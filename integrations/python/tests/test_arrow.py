"""Arrow in, Arrow out: pyarrow, Polars, pandas and DuckDB, with nulls, slices, chunks and dictionaries."""

import ipaddress
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wirespeed
from wirespeed import Table

TABLE = Table({"10.0.0.0/8": "lab", "10.200.0.0/16": "guests", "2001:db8::/32": "six"}, prefix_lookups=True)
TEXTS = ["10.1.2.3", None, "10.200.0.1", "192.0.2.1", "2001:db8::1", "::ffff:10.200.3.4"]
NUMBERS = [1, None, 2, None, 3, 2]
LABELS = ["lab", None, "guests", None, "six", "guests"]


def packed(text: str | None, mapped: bool = False) -> bytes | None:
    if text is None:
        return None
    address = ipaddress.ip_address(text)
    if mapped and isinstance(address, ipaddress.IPv4Address):
        address = ipaddress.ip_address(f"::ffff:{address}")
    return address.packed


def forms() -> dict[str, pa.Array]:
    binary = [packed(text) for text in TEXTS]
    return {
        "utf8": pa.array(TEXTS, pa.string()),
        "large": pa.array(TEXTS, pa.large_string()),
        "view": pa.array(TEXTS, pa.string_view()),
        "binary": pa.array(binary, pa.binary()),
        "large binary": pa.array(binary, pa.large_binary()),
        "binary view": pa.array(binary, pa.binary_view()),
        "16 bytes": pa.array([packed(text, mapped=True) for text in TEXTS], pa.binary(16)),
        "dictionary": pa.array(TEXTS, pa.string()).dictionary_encode(),
        "dictionary of int8": pa.array(TEXTS).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    }


@pytest.mark.parametrize("form", forms())
def test_every_form_slice_and_chunk(form: str) -> None:
    array = forms()[form]
    assert pa.array(TABLE.lookup(array)).to_pylist() == NUMBERS
    labels = pa.array(TABLE.lookup_labels(array))
    assert pa.types.is_dictionary(labels.type) and labels.to_pylist() == LABELS
    for start, length in [(0, 0), (1, 3), (2, 4), (5, 1)]:
        part = array.slice(start, length)
        assert TABLE.lookup(part).to_pylist() == NUMBERS[start : start + length]
        assert TABLE.lookup_labels(part).to_pylist() == LABELS[start : start + length]
    chunked = pa.chunked_array([array.slice(1, 2), array.slice(0, 0), array.slice(3)])
    assert TABLE.lookup(chunked).to_pylist() == NUMBERS[1:]
    numbers, lengths = TABLE.lookup_lengths(array)
    assert pa.array(numbers).type == pa.uint32() and pa.array(lengths).type == pa.uint8()
    assert lengths.to_pylist() == [8, None, 16, None, 32, 16]
    assert pa.array(TABLE.lookup_prefix(array)).to_pylist() == [
        "10.0.0.0/8", None, "10.200.0.0/16", None, "2001:db8::/32", "10.200.0.0/16",
    ]


@pytest.mark.parametrize("kind", [pa.uint32(), pa.int64(), pa.binary(4)])
def test_ipv4_alone(kind: pa.DataType) -> None:
    hosts = [text and int(ipaddress.IPv4Address(text)) for text in TEXTS[:4]]
    values = [host and host.to_bytes(4, "big") for host in hosts] if kind == pa.binary(4) else hosts
    array = pa.array(values, kind)
    assert TABLE.lookup(array).to_pylist() == NUMBERS[:4]
    assert TABLE.lookup(array.slice(1, 2), threads=2).to_pylist() == NUMBERS[1:3]
    assert TABLE.lookup_prefix(array.slice(2)).to_pylist() == ["10.200.0.0/16", None]


def test_null_hides_what_lies_there() -> None:
    everything = Table({"0.0.0.0/0": 1})
    hosts = pa.Array.from_buffers(pa.uint32(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(bytes(12))])
    assert hosts.to_pylist() == [0, None, 0]
    assert everything.lookup(hosts).to_pylist() == [1, None, 1]
    assert everything.lookup(pa.nulls(3)).to_pylist() == [None] * 3


def test_wrong_values_have_a_place_or_are_null() -> None:
    wrong = pa.array(["10.1.2.3", "10.1.2", "10.200.0.1"])
    with pytest.raises(wirespeed.InputError, match='element 1: "10.1.2" is no address'):
        TABLE.lookup(wrong)
    with pytest.raises(wirespeed.InputError, match="element 4"):
        TABLE.lookup(pa.chunked_array([wrong.slice(0, 1), wrong.slice(2), wrong.slice(0, 1), wrong]))
    with pytest.raises(wirespeed.InputError, match="element 1"):
        TABLE.lookup(wrong.dictionary_encode())
    assert TABLE.lookup(wrong, errors="null").to_pylist() == [1, None, 2]
    assert TABLE.lookup(wrong.dictionary_encode(), errors="null").to_pylist() == [1, None, 2]
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), wrong)
    assert TABLE.lookup(unused).to_pylist() == [1, 2, 1]
    with pytest.raises(wirespeed.InputError, match="3 bytes"):
        TABLE.lookup(pa.array([b"abc"]))
    with pytest.raises(wirespeed.InputError, match="-1 is no IPv4"):
        TABLE.lookup(pa.array([-1], pa.int64()))
    for array in [pa.array([1.5]), pa.array([[1]]), pa.array([b"abc"], pa.binary(3)), pa.table({"a": [1]})]:
        with pytest.raises(TypeError, match="no addresses in an Arrow array"):
            TABLE.lookup(array)


def test_many_rows_agree_with_one_at_a_time() -> None:
    random = np.random.default_rng(3)
    hosts = random.integers(0x0A000000, 0x0B400000, 30_000, dtype=np.uint32)
    numbers = TABLE.lookup(hosts)
    texts = pa.array([str(ipaddress.IPv4Address(int(host))) for host in hosts])
    expected = [int(number) or None for number in numbers]
    for threads in [1, 3]:
        assert TABLE.lookup(texts, threads=threads).to_pylist() == expected
        assert TABLE.lookup(pa.array(hosts), threads=threads).to_pylist() == expected
    assert TABLE.lookup_labels(texts).to_pylist() == [TABLE.label(int(number)) for number in numbers]
    assert {0, 1, 2} == set(numbers.tolist())


def test_no_copy_of_hosts() -> None:
    hosts = pa.array(np.arange(1000, dtype=np.uint32))
    before = pa.total_allocated_bytes()
    found = pa.array(TABLE.lookup(hosts))
    assert pa.total_allocated_bytes() == before, "pyarrow takes the result as it is"
    assert len(found) == 1000


def test_polars() -> None:
    frame = pl.DataFrame({"dst": TEXTS})
    frame = frame.with_columns(network=pl.Series(TABLE.lookup_labels(frame["dst"])))
    assert frame["network"].to_list() == LABELS
    assert pl.Series(TABLE.lookup(frame["dst"])).dtype == pl.UInt32


def test_pandas() -> None:
    frame = pd.DataFrame({"dst": TEXTS})
    network = pa.array(TABLE.lookup_labels(pa.array(frame["dst"], from_pandas=True)))
    frame["network"] = network.cast(pa.string()).to_pandas()
    assert [None if pd.isna(label) else label for label in frame["network"]] == LABELS
    hosts = pd.Series(np.array([0x0A010203, 0], dtype=np.uint32))
    assert TABLE.lookup(hosts.to_numpy()).tolist() == [1, 0]


def test_a_released_array_is_refused() -> None:
    class Twice:
        capsules = pa.array(TEXTS).__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return self.capsules

    twice = Twice()
    assert TABLE.lookup(twice).to_pylist() == NUMBERS
    with pytest.raises(wirespeed.InputError, match="taken before"):
        TABLE.lookup(twice)


def test_another_process_opens_the_image(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "table.img")
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).lookup_labels('10.200.0.1'))"
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(TABLE), capture_output=True, check=True)
    assert done.stdout.decode().strip() == "guests"
