"""Tables of names."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wirespeed
from wirespeed import NameTable

NAMES = {"example.com": "shop", "ads.example.com": "ads"}
QUERIES = ["www.example.com", None, "x.ADS.example.com", "example.org"]
LABELS = ["shop", None, "ads", None]


def test_lookups_of_every_kind() -> None:
    table = NameTable(NAMES)
    assert table.lookup_labels("www.example.com") == "shop" and table.lookup("example.org") is None
    assert table.lookup_labels(QUERIES) == LABELS
    assert table.lookup(QUERIES) == [1, None, 2, None]
    for array in [pa.array(QUERIES), pa.array(QUERIES, pa.string_view()), pa.array(QUERIES).dictionary_encode()]:
        assert table.lookup(array).to_pylist() == [1, None, 2, None]
        assert table.lookup_labels(array.slice(1)).to_pylist() == LABELS[1:]
    many = QUERIES * 3000
    assert table.lookup_labels(many, threads=2) == LABELS * 3000
    assert table.lookup_labels(pa.chunked_array([many, many])).to_pylist() == LABELS * 6000


def test_forms() -> None:
    urls = NameTable({"example.com/a": 1}, form="urls")
    assert urls.lookup(["http://example.com/a/b?c", "https://example.com/b"]) == [1, None]
    assert NameTable({"/com/example": 1}, form="names").lookup("/com/example/x") == 1
    assert NameTable({"ndn:/com/example": 1}, form="ndn").lookup("ndn:/com/example/x") == 1
    with pytest.raises(wirespeed.InputError, match="form of names"):
        NameTable(form="dns")  # type: ignore[arg-type]


def test_changes_and_dictionary() -> None:
    table = NameTable({"example.com": 1})
    table["example.org"] = 2
    assert table.lookup(["a.example.org"]) == [2] and len(table) == 2 and "example.org" in table
    assert table.withdraw("example.org") is True and table.withdraw("example.org") is False
    assert table.apply([("a.com", 3), ("b.com", 4), ("a.com", None)]) == 3
    assert sorted(table.items()) == [("/com/b", 4), ("/com/example", 1)]
    assert table.get("a.com") is None and table["b.com"] == 4 and sorted(table.keys()) == ["/com/b", "/com/example"]
    assert [table[key] for key in table] == table.values() and all(key in table for key in table.keys())
    assert table.lookup(table.keys()) == table.values() and NameTable(table.items()).items() == table.items()
    urls = NameTable({"example.com:8080/a": 1}, form="urls")
    assert urls[urls.keys()[0]] == 1
    table["/com/b"] = 5
    assert table["b.com"] == 5 and table.withdraw("/com/b") is True
    table.insert("b.com", 4)
    with pytest.raises(wirespeed.InputError, match="element 1"):
        table.apply([("c.com", 3), ("c d", 4)])
    assert len(table) == 2
    with pytest.raises(wirespeed.StateError):
        table.insert("c.com", "label")
    with pytest.raises(KeyError):
        del table["c.com"]


def test_wrong_names() -> None:
    table = NameTable(NAMES)
    with pytest.raises(wirespeed.InputError, match='element 1: "a b"'):
        table.lookup(["a.com", "a b"])
    assert table.lookup(["www.example.com", "a b"], errors="null") == [1, None]
    with pytest.raises(wirespeed.InputError, match="element 2"):
        table.lookup(pa.array(["a.com", None, "10.0.0.1"]))
    wrong: Any
    for wrong in [7, None, pa.array([1])]:
        with pytest.raises(TypeError, match="no names"):
            table.lookup(wrong)
    with pytest.raises(TypeError, match="element 0: a int is no name"):
        table.lookup([7])  # type: ignore[arg-type]


def test_files_images_and_pickles(tmp_path: Path) -> None:
    text, image = tmp_path / "names.txt", tmp_path / "names.img"
    text.write_text("example.com shop\nads.example.com ads\n")
    table = NameTable.from_file(text)
    assert pickle.loads(pickle.dumps(table)).lookup_labels(QUERIES) == LABELS
    table.save(image)
    for copy in [NameTable.open(image), pickle.loads(pickle.dumps(table))]:
        assert copy.lookup_labels(QUERIES) == LABELS and copy.form == "domains"
    urls = NameTable({"example.com/a": "x"}, form="urls")
    urls.save(image)
    assert pickle.loads(pickle.dumps(urls)).lookup_labels("example.com/a/b") == "x"
    urls.insert("example.com/b", "y")
    with pytest.raises(wirespeed.StateError, match="save it first"):
        pickle.dumps(urls)
    text.write_text("example.com shop\na//b..c x\n")
    with pytest.raises(wirespeed.FileError, match="names.txt:2"):
        NameTable.from_file(text)
    assert sum(NameTable.from_file(text, lenient=True).skipped.values()) == 1
    text.write_text("other.com o\n")
    table.load(text)
    assert table.lookup_labels(["other.com", "example.com"]) == ["o", None]


def test_csv_with_columns_by_name(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("id,fqdn,kind,risk\n1,example.com,shop,3\n2,ads.example.com,ads,\n")
    queries = ["www.example.com", "x.ads.example.com", "example.org"]
    usual = NameTable.from_file(path, columns=["kind"])
    assert usual.lookup_labels(queries) == ["shop", "ads", None]
    assert pickle.loads(pickle.dumps(usual)).lookup_labels(queries) == ["shop", "ads", None]
    table = NameTable.from_file(path, name_column="fqdn", columns=["risk", "kind"])
    assert table.lookup_labels(queries, field="risk") == ["3", None, None]
    assert table.lookup_labels(queries, field="kind") == ["shop", "ads", None]
    with pytest.raises(wirespeed.FileError, match="nosuch"):
        NameTable.from_file(path, name_column="nosuch")
    with pytest.raises(wirespeed.InputError, match="name_column"):
        NameTable.from_file(path, name_column="")
    path.write_text("0.0.0.0 ads.example\n")
    with pytest.raises(wirespeed.InputError, match="name-column is for names in CSV"):
        NameTable.from_file(path, "hosts", name_column="x")


LISTS = {
    "hosts": "0.0.0.0 ads.example\n",
    "adblock": "||ads.example^\n@@||good.ads.example^\n",
    "dnsmasq": "address=/ads.example/0.0.0.0\nserver=/good.ads.example/#\n",
    "rpz": "$TTL 60\n@ SOA a. b. 1 2 3 4 5\nads.example CNAME .\n*.ads.example CNAME .\ngood.ads.example CNAME rpz-passthru.\n",
    "psl": "// ===BEGIN ICANN DOMAINS===\nads.example\n!good.ads.example\n// ===END ICANN DOMAINS===\n",
}


@pytest.mark.parametrize("format", list(LISTS))
def test_lists_of_domains(tmp_path: Path, format: str) -> None:
    path, image = tmp_path / "list", tmp_path / "list.img"
    path.write_text(LISTS[format])
    table = NameTable.from_file(path)
    value = {"rpz": "nxdomain", "psl": "icann"}.get(format, "blocked")
    beneath = None if format == "hosts" else value
    asked = ["ads.example", "x.ads.example", "good.ads.example", "example.org", None]
    right = [value, beneath, None, None, None]
    assert table.lookup_labels(asked) == right and table.labels == {1: value}
    assert table.lookup(pa.array(asked)).to_pylist() == [1, beneath and 1, None, None, None]
    assert NameTable.from_file(path, format).lookup_labels(asked, threads=2) == right  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(table)).lookup_labels(asked) == right
    table.save(image)
    assert NameTable.open(image).lookup_labels(asked) == right and len(NameTable.open(image)) == len(table)
    assert table.engine and table.memory_usage > 0 and "domains" in repr(table)
    changes: list[Callable[[], object]] = [
        lambda: table.insert("a.com", "x"),
        lambda: table.load(path),
        lambda: table.keys(),
        lambda: "a.com" in table,
    ]
    for change in changes:
        with pytest.raises(wirespeed.StateError, match="list of domains"):
            change()
    assert table.lookup_labels(asked) == right


def test_registrable_domains(tmp_path: Path) -> None:
    path, image = tmp_path / "public_suffix_list.dat", tmp_path / "psl.img"
    path.write_text("// ===BEGIN ICANN DOMAINS===\nuk\nco.uk\n*.ck\n!www.ck\n// ===END ICANN DOMAINS===\n")
    NameTable.from_file(path).save(image)
    asked = ["www.example.co.uk", "co.uk", "a.b.shop.ck", "shop.ck", "a.www.ck", None, "192.0.2.1"]
    right = ["example.co.uk", None, "b.shop.ck", None, "www.ck", None, None]
    for table in (NameTable.from_file(path), NameTable.open(image)):
        assert table.registrable(asked) == right
        assert table.registrable(pa.array(asked)).to_pylist() == right
        assert table.registrable("WWW.Example.CO.UK") == "example.co.uk" and table.registrable("uk") is None
        with pytest.raises(wirespeed.InputError, match=r"1: .*a\.\.uk"):
            table.registrable(["a.uk", "a..uk"])
        assert table.registrable(["a.uk", "a..uk"], errors="null") == ["a.uk", None]
    with pytest.raises(wirespeed.Error, match="no list of public suffixes"):
        NameTable(NAMES).registrable("www.example.com")


def test_lists_that_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("0.0.0.0 ads.example\n0.0.0.0 a..b\n")
    with pytest.raises(wirespeed.FileError, match="list:2"):
        NameTable.from_file(path)
    table = NameTable.from_file(path, lenient=True)
    assert len(table) == 1 and sum(table.skipped.values()) == 1
    with pytest.raises(wirespeed.InputError, match="hosts, adblock"):
        NameTable.from_file(path, "plain")  # type: ignore[arg-type]
    with pytest.raises(wirespeed.InputError, match="form"):
        NameTable.from_file(path, "hosts", form="urls", lenient=True)
    path.write_text("ads.example ads\n")
    assert NameTable.from_file(path).lookup_labels("x.ads.example") == "ads"


def test_fields_of_labels() -> None:
    table = NameTable({"example.com": "list=shop,rank=7", "example.org": "list=news"})
    asked = ["a.example.com", "example.org", "example.net"]
    assert table.lookup_labels(asked, field="list") == ["shop", "news", None]
    assert table.lookup_labels(asked, field="rank") == ["7", None, None]
    with pytest.raises(wirespeed.InputError, match="no field colour; there are list, rank"):
        table.lookup_labels(asked, field="colour")


def test_the_icann_section_alone(tmp_path: Path) -> None:
    path = tmp_path / "list"
    sections = {"ICANN": "example", "PRIVATE": "blog.example"}
    text = "".join(f"// ===BEGIN {name} DOMAINS===\n{line}\n// ===END {name} DOMAINS===\n" for name, line in sections.items())
    path.write_text(text)
    assert NameTable.from_file(path).registrable("x.a.blog.example") == "a.blog.example"
    table = NameTable.from_file(path, icann=True)
    assert table.registrable("x.a.blog.example") == "blog.example"
    assert pickle.loads(pickle.dumps(table)).registrable("x.a.blog.example") == "blog.example"
    path.write_text("ads.example ads\n")
    with pytest.raises(wirespeed.InputError, match="icann is for the Public Suffix List"):
        NameTable.from_file(path, icann=True)
