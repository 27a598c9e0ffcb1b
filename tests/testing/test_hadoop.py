"""What Hadoop's servers are given."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from twopc.testing.hadoop import write_site


def test_a_site_says_each_property_as_it_is(tmp_path: Path) -> None:
    properties = {"fs.defaultFS": "file:///", "said": "a < b & c"}
    write_site(tmp_path / "conf" / "core-site.xml", properties)
    read = ElementTree.parse(tmp_path / "conf" / "core-site.xml").getroot()
    assert {each.findtext("name"): each.findtext("value") for each in read} == properties
