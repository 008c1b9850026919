"""Files that are compressed."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import wirespeed
from wirespeed import Classifier, NameTable, Table, Vrps

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda plain: pa.compress(plain, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("packer", PACKERS)
def test_files_of_every_kind(packer: str, tmp_path: Path) -> None:
    def packed(text: str) -> Path:
        path = tmp_path / f"file.{packer}"
        path.write_bytes(PACKERS[packer](text.encode()))
        return path

    table = Table.from_file(packed("10.0.0.0/8 lab\n2001:db8::/32 six\n"))
    assert table.lookup_labels(["10.1.2.3", "2001:db8::1"]) == ["lab", "six"]
    table.load(packed("10.0.0.0/8 other\n"))
    assert table.lookup_labels("10.1.2.3") == "other"
    assert NameTable.from_file(packed("example.com 7\n")).lookup_labels("www.example.com") == "7"
    rules = packed("*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp --dport 443 -j ACCEPT\nCOMMIT\n")
    assert Classifier.from_file(rules).lookup_labels("192.0.2.1", "192.0.2.2", 6, 1, 443) == "ACCEPT"
    vrps = Vrps.from_file(packed("ASN,IP Prefix,Max Length,Trust Anchor\nAS1,10.0.0.0/8,16,ripe\n"))
    assert vrps.rov("10.0.0.0/8", 1) == "valid"
    path = packed("10.0.0.0/8 lab\n" * 5000)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(wirespeed.FileError):
        Table.from_file(path)
