"""Tables of addresses by numpy, lists and single addresses."""

import ipaddress
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wirespeed
from wirespeed import Table

ROUTES = {"10.0.0.0/8": 7, "10.200.0.0/16": 8, "2001:db8::/32": 9}
LABELS = {"10.0.0.0/8": "lab", "10.200.0.0/16": "guests", "2001:db8::/32": "lab"}


def host(text: str) -> int:
    return int(ipaddress.IPv4Address(text))


def rows(*texts: str) -> np.ndarray[Any, Any]:
    packed = b"".join(ipaddress.IPv6Address(text).packed for text in texts)
    return np.frombuffer(packed, dtype=np.uint8).reshape(-1, 16)


def test_answers_are_of_the_kind_of_the_question() -> None:
    table = Table(ROUTES)
    assert table.lookup("10.1.2.3") == 7
    assert table.lookup("192.0.2.1") is None
    assert table.lookup(ipaddress.ip_address("2001:db8::1")) == 9
    assert table.lookup(["10.200.0.1", None, "2001:db9::", "2001:db8::1"]) == [8, None, None, 9]
    assert table.lookup(("10.200.0.1",)) == [8]
    found = table.lookup(np.array([host("10.1.2.3"), host("10.200.1.1"), host("192.0.2.1")], dtype=np.uint32))
    assert isinstance(found, np.ndarray) and found.dtype == np.uint32
    assert found.tolist() == [7, 8, 0]
    found = table.lookup(rows("2001:db8::5", "::ffff:10.200.0.9", "::1"))
    assert found.tolist() == [9, 8, 0]
    assert table.lookup(np.empty(0, dtype=np.uint32)).tolist() == []
    assert table.lookup([]) == []


def test_mapped_addresses_are_ipv4() -> None:
    table = Table({"10.0.0.0/8": 7, "::/0": 1})
    assert table.lookup(["::ffff:10.1.2.3", "::fffe:10.1.2.3", "::1"]) == [7, 1, 1]
    assert table.lookup_all("::ffff:10.1.2.3") == [("10.0.0.0/8", 7)]


def test_slices_with_steps_are_looked_up() -> None:
    table = Table(ROUTES)
    hosts = np.array([host("10.1.2.3"), 0, host("10.200.1.1"), 0], dtype=np.uint32)
    assert table.lookup(hosts[::2]).tolist() == [7, 8]
    assert table.lookup(hosts[::-1]).tolist() == [0, 8, 0, 7]
    assert table.lookup(rows("2001:db8::5", "::1", "2001:db8::6")[::2]).tolist() == [9, 9]


def test_labels() -> None:
    table = Table(LABELS)
    assert table.lookup_labels("10.1.2.3") == "lab"
    assert table.lookup_labels("192.0.2.1") is None
    assert table.lookup_labels(["10.200.0.1", None, "2001:db8::1"]) == ["guests", None, "lab"]
    found = table.lookup_labels(np.array([host("10.1.2.3"), 0, host("10.200.1.1")], dtype=np.uint32))
    assert found.dtype == object and found.tolist() == ["lab", None, "guests"]
    assert table.labels == {1: "lab", 2: "guests"}
    numbers = table.lookup(["10.1.2.3", "10.200.0.1"])
    assert [number and table.label(number) for number in numbers] == ["lab", "guests"]
    assert table.label(77) is None
    with pytest.raises(wirespeed.StateError, match="no labels"):
        Table(ROUTES).lookup_labels("10.1.2.3")


def test_prefixes() -> None:
    table = Table(ROUTES, prefix_lookups=True)
    addresses = ["10.200.0.1", "192.0.2.1", "2001:db8::1", "::ffff:10.1.2.3", None]
    assert table.lookup_prefix(addresses) == ["10.200.0.0/16", None, "2001:db8::/32", "10.0.0.0/8", None]
    assert table.lookup_lengths(addresses) == ([8, None, 9, 7, None], [16, None, 32, 8, None])
    assert table.lookup_prefix("10.1.2.3") == "10.0.0.0/8"
    assert table.lookup_lengths("10.1.2.3") == (7, 8)
    numbers, lengths = table.lookup_lengths(np.array([host("10.1.2.3"), 0], dtype=np.uint32))
    assert numbers.tolist() == [7, 0] and lengths.dtype == np.uint8 and lengths.tolist() == [8, 0]
    assert table.lookup_prefix(rows("2001:db8::1", "::1")).tolist() == ["2001:db8::/32", None]
    assert table.lookup_all("10.200.0.1") == [("10.0.0.0/8", 7), ("10.200.0.0/16", 8)]
    with pytest.raises(wirespeed.StateError, match="prefix_lookups"):
        Table(ROUTES).lookup_prefix("10.1.2.3")


def test_a_table_is_like_a_dictionary() -> None:
    table = Table(ROUTES)
    assert len(table) == 3 and list(table) == list(ROUTES) and table.items() == list(ROUTES.items())
    assert table.keys() == list(ROUTES) and table.values() == [7, 8, 9] and dict(table) == ROUTES
    assert table["10.0.0.0/8"] == 7 and "10.0.0.0/9" not in table
    assert table.get("10.0.0.0/9") is None and table.get("10.0.0.0/9", 0) == 0
    table[ipaddress.ip_network("10.0.0.0/9")] = 5
    assert table.lookup("10.1.2.3") == 5
    del table["10.0.0.0/9"]
    assert table.lookup("10.1.2.3") == 7
    with pytest.raises(KeyError):
        table["10.0.0.0/9"]
    with pytest.raises(KeyError):
        del table["10.0.0.0/9"]
    assert repr(table) == "<wirespeed.Table of 2 IPv4 and 1 IPv6 prefixes>"


def test_changes_are_live_and_whole() -> None:
    table = Table()
    table.insert("10.0.0.0/8", 7)
    assert table.lookup("10.1.2.3") == 7
    assert table.withdraw("10.0.0.0/8") is True and table.withdraw("10.0.0.0/8") is False
    assert table.apply([("10.0.0.0/8", 1), ("::/0", 2), ("10.0.0.0/8", 3)]) == 3
    assert table.items() == [("10.0.0.0/8", 3), ("::/0", 2)]
    with pytest.raises(wirespeed.InputError, match="element 1: .*host bits|10.1.2.3/8"):
        table.apply({"11.0.0.0/8": 1, "10.1.2.3/8": 1})
    assert len(table) == 2
    assert table.apply({"10.0.0.0/8": None, "::/0": None}) == 2 and len(table) == 0


def test_labels_and_numbers_do_not_mix() -> None:
    table = Table(LABELS)
    table.insert("192.0.2.0/24", "new")
    assert table.lookup_labels("192.0.2.1") == "new"
    table.insert("192.0.2.0/24", 1)  # the number of "lab"
    assert table["192.0.2.0/24"] == "lab"
    with pytest.raises(wirespeed.StateError, match="number of no label"):
        table.insert("192.0.2.0/24", 99)
    with pytest.raises(wirespeed.StateError, match="numbers of the caller's own"):
        Table(ROUTES).insert("192.0.2.0/24", "new")
    with pytest.raises(wirespeed.InputError, match="all numbers or all labels"):
        Table([("10.0.0.0/8", 1), ("11.0.0.0/8", "a")])


def test_numbers_of_labels_stay_until_they_are_forgotten() -> None:
    table = Table({"10.0.0.0/8": "a"})
    table.insert("10.0.0.0/8", "b")
    assert table.labels == {1: "a", 2: "b"}
    table.insert("11.0.0.0/8", "c")
    assert table.label(1) == "a" and table.lookup("11.0.0.1") == 3
    table.forget_labels()
    assert table.labels == {2: "b", 3: "c"}


def test_wrong_arguments_are_refused_with_their_place() -> None:
    table = Table(ROUTES)
    with pytest.raises(wirespeed.InputError, match="element 1: \"10.1.2\" is no address"):
        table.lookup(["10.1.2.3", "10.1.2"])
    assert issubclass(wirespeed.InputError, ValueError) and issubclass(wirespeed.InputError, wirespeed.Error)
    assert table.lookup(["10.1.2.3", "10.1.2"], errors="null") == [7, None]
    assert table.lookup("nonsense", errors="null") is None
    with pytest.raises(wirespeed.InputError, match="errors is"):
        table.lookup([], errors="ignore")  # type: ignore[call-overload]
    with pytest.raises(wirespeed.InputError, match="threads"):
        table.lookup([], threads=5000)
    wrong: Any
    for wrong in [7, 1.5, None, object(), {"a": 1}]:
        with pytest.raises(TypeError, match="no addresses"):
            table.lookup(wrong)
    with pytest.raises(TypeError, match="element 1: a int is no address"):
        table.lookup(["10.0.0.1", 7])  # type: ignore[arg-type]
    array: Any
    for array in [np.zeros(2), np.zeros((2, 4), np.uint8), np.zeros(2, np.int64), np.array(["10.0.0.1"])]:
        with pytest.raises(TypeError, match="numpy array of"):
            table.lookup(array)
    for prefix in ["10.0.0.0", "10.0.0.0/33", "10.1.2.3/8", "x"]:
        with pytest.raises(wirespeed.InputError):
            table.insert(prefix, 1)
    for number in [0, -1, 2**32]:
        with pytest.raises(wirespeed.InputError, match="is no value"):
            table.insert("11.0.0.0/8", number)
    for value in [True, 1.5, None]:
        with pytest.raises(TypeError, match="is no value"):
            table.insert("11.0.0.0/8", value)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pairs"):
        Table(["10.0.0.0/8"])  # type: ignore[list-item]
    with pytest.raises(wirespeed.InputError, match="engine"):
        Table(ROUTES, engine="warp")
    with pytest.raises(wirespeed.LimitError, match="cap"):
        Table(ROUTES, memory_cap=1)
    assert table.items() == list(ROUTES.items())


def test_files(tmp_path: Path) -> None:
    plain, csv = tmp_path / "routes.txt", tmp_path / "routes.csv"
    plain.write_text("10.0.0.0/8 lab\n2001:db8::/32 guests\n")
    assert Table.from_file(plain).items() == [("10.0.0.0/8", "lab"), ("2001:db8::/32", "guests")]
    csv.write_text("start,end,asn,name\n10.0.0.0,10.0.0.255,7,a\n")
    table = Table.from_file(str(csv), "csv", columns=["asn"], range_columns=("start", "end"))
    assert table.items() == [("10.0.0.0/24", "7")]
    plain.write_text("10.0.0.0/8 lab\nnonsense\n10.1.2.3/16 x\n")
    with pytest.raises(wirespeed.FileError, match="routes.txt:2"):
        Table.from_file(plain)
    table = Table.from_file(plain, lenient=True, mask_host_bits=True)
    assert table.keys() == ["10.0.0.0/8", "10.1.0.0/16"] and sum(table.skipped.values()) == 1
    for option in [{"columns": ["asn"]}, {"set": "b"}, {"peer": 7}, {"vrf": "red"}, {"origins": True}]:
        with pytest.raises(wirespeed.InputError, match="routes.txt: .* is for .* of the format plain"):
            Table.from_file(plain, "plain", lenient=True, mask_host_bits=True, **option)  # type: ignore[arg-type]
    with pytest.raises(wirespeed.InputError, match="peer: peer=x: "):
        Table.from_file(plain, peer="x")
    sets = tmp_path / "sets"
    sets.write_text("create a hash:net\nadd a 192.0.2.0/24\ncreate b hash:net\nadd b 10.0.0.0/8\n")
    table = Table.from_file(sets, set="b")
    assert table.keys() == pickle.loads(pickle.dumps(table)).keys() == ["10.0.0.0/8"]
    csv.write_text("first,last\n167772160,167772415\n")
    assert Table.from_file(csv, range_columns=("first", "last"), address_numbers=4).keys() == ["10.0.0.0/24"]
    with pytest.raises(wirespeed.InputError, match="no format"):
        Table.from_file(plain, "xls")
    with pytest.raises(OSError):
        Table.from_file(tmp_path / "absent")
    with pytest.raises(wirespeed.FileError):
        Table.open(plain)


def test_images_and_pickles(tmp_path: Path) -> None:
    image, text = tmp_path / "table.img", tmp_path / "table.txt"
    table = Table(LABELS)
    with pytest.raises(wirespeed.StateError, match="save it first"):
        pickle.dumps(table)
    table.save(image)
    for copy in [Table.open(image), pickle.loads(pickle.dumps(table)), pickle.loads(pickle.dumps(Table.open(image)))]:
        assert copy.items() == list(LABELS.items()) and copy.lookup_labels("10.200.0.1") == "guests"
    table.insert("192.0.2.0/24", "lab")
    with pytest.raises(wirespeed.StateError):
        pickle.dumps(table)
    text.write_text("10.0.0.0/8,a\n")
    text.write_text("prefix,name\n10.0.0.0/8,a\n")
    from_text = Table.from_file(text, columns=["name"], prefix_lookups=True)
    copy = pickle.loads(pickle.dumps(from_text))
    assert copy.items() == [("10.0.0.0/8", "a")] and copy.lookup_prefix("10.0.0.1") == "10.0.0.0/8"
    table.load(image)
    assert table.items() == list(LABELS.items())
    # The file is another one than the table was made of.
    pickled = pickle.dumps(from_text)
    text.write_text("prefix,name\n10.0.0.0/8,other\n")
    with pytest.raises(wirespeed.StateError, match="has changed since"):
        pickle.loads(pickled)
    with pytest.raises(wirespeed.StateError, match="has changed since"):
        pickle.dumps(from_text)
    image.write_bytes(image.read_bytes()[:-9])
    with pytest.raises(wirespeed.FileError):
        Table.open(image)


def test_masked_arrays_are_refused() -> None:
    table = Table(ROUTES)
    hosts = np.array([host("10.0.0.1"), host("10.200.0.1")], dtype=np.uint32)
    masked: Any = np.ma.masked_array(hosts, mask=[True, False])
    with pytest.raises(TypeError, match="masked"):
        table.lookup(masked)
    assert table.lookup(pa.array(masked)).to_pylist() == [None, 8]
    assert table.lookup(masked.filled(0)).tolist() == [0, 8]


def test_many_addresses_agree_with_ipaddress() -> None:
    random.seed(7)
    nets: dict[Any, int] = {}
    while len(nets) < 300:
        length = random.randint(4, 28)
        address = random.getrandbits(32) >> (32 - length) << (32 - length)
        nets[ipaddress.ip_network((address, length))] = random.randint(1, 50)
    table = Table(nets, prefix_lookups=True)
    hosts = np.array([random.getrandbits(32) for _ in range(20_000)], dtype=np.uint32)
    by_length = sorted(nets, key=lambda net: -net.prefixlen)
    masks = [(int(net.network_address), int(net.netmask), nets[net], str(net)) for net in by_length]

    def oracle(address: int) -> tuple[int, str | None]:
        return next(((value, text) for net, mask, value, text in masks if address & mask == net), (0, None))

    expected = [oracle(int(address)) for address in hosts]
    for threads in [1, 2, 0]:
        assert table.lookup(hosts, threads=threads).tolist() == [value for value, _ in expected]
    texts = [str(ipaddress.IPv4Address(int(address))) for address in hosts]
    assert table.lookup(texts, threads=3) == [value or None for value, _ in expected]
    assert table.lookup_prefix(texts, threads=2) == [text for _, text in expected]
    texts[15_000], texts[5_000] = "a", "b"
    with pytest.raises(wirespeed.InputError, match="element 5000: \"b\""):
        table.lookup(texts, threads=4)


def test_lookups_run_while_the_table_changes() -> None:
    table = Table({"0.0.0.0/0": 1})
    hosts = np.arange(50_000, dtype=np.uint32)
    seen: set[tuple[int, ...]] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(tuple(np.unique(table.lookup(hosts)).tolist()))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for value in range(2, 200):
        table.insert("0.0.0.0/0", value)
    done.set()
    for reader in readers:
        reader.join()
    assert all(len(values) == 1 for values in seen), "a batch sees one state"


def test_merged_files_and_fields_of_labels(tmp_path: Path) -> None:
    own, asn, listed = tmp_path / "own.csv", tmp_path / "asn.txt", tmp_path / "list"
    own.write_text("prefix,site,rack\n10.1.0.0/16,Kiel,7\n10.2.0.0/16,Bonn,\n")
    asn.write_text("10.0.0.0/8 64496\n2001:db8::/32 64497\n")
    listed.write_text("10.1.2.0/24\n")
    table = Table.from_files({"own": (own, ["site", "rack"]), "asn": asn, "listed": listed}, prefix_lookups=True)
    asked = ["10.1.2.3", "10.2.0.1", "10.3.0.1", "2001:db8::1", "192.0.2.1"]
    assert table.lookup_labels("10.1.2.3") == "site=Kiel,rack=7,asn=64496,listed=true"
    assert table.lookup_labels(asked, field="asn") == ["64496", "64496", "64496", "64497", None]
    assert table.lookup_labels(asked, field="site") == ["Kiel", "Bonn", None, None, None]
    assert table.lookup_labels("10.3.0.1", field="rack") is None
    column = pa.array(table.lookup_labels(pa.array(asked), field="asn"))
    assert column.to_pylist() == ["64496", "64496", "64496", "64497", None]
    assert column.dictionary.to_pylist() == ["64496", "64497"]
    found = table.lookup_labels(np.array([host("10.1.2.3"), host("10.3.0.1")], dtype=np.uint32), field="site")
    assert found.tolist() == ["Kiel", None]
    assert table.lookup_prefix("10.1.2.3") == "10.1.2.0/24"
    pairs = Table.from_files([("asn", str(asn)), ("own", (str(own), ["site"]))])
    assert pairs.lookup_labels("10.1.2.3") == "asn=64496,own=Kiel"
    for field in ["colour", ""]:
        with pytest.raises(wirespeed.InputError, match="there are asn, listed, rack, site"):
            table.lookup_labels(asked, field=field)
    with pytest.raises(wirespeed.InputError, match="the labels have no fields"):
        Table(LABELS).lookup_labels("10.1.2.3", field="asn")
    with pytest.raises(wirespeed.InputError, match="needs a file"):
        Table.from_files({})
    wrong: Any = 7
    with pytest.raises(TypeError, match="element 0: a int is no file"):
        Table.from_files({"a": wrong})
    with pytest.raises(wirespeed.FileError, match="asn.txt:1"):
        Table.from_files({"asn": (asn, ["x"])})
    asn.write_text("10.0.0.0/8 1\n10.0.0.0/33 1\n")
    with pytest.raises(wirespeed.FileError, match="asn.txt:2"):
        Table.from_files({"asn": asn})
    lenient = Table.from_files({"asn": asn}, lenient=True)
    assert sum(lenient.skipped.values()) == 1
    with pytest.raises(wirespeed.StateError, match="save it first|not what a file holds"):
        pickle.dumps(lenient)
