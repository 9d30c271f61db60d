"""Records that installed packages offer, by entry points."""

import pytest

from isolitmus.model.errors import UnknownName
from isolitmus.model.registry import Registry


def test_what_an_installed_package_offers_is_known_as_long_as_it_is_there(monkeypatch, tmp_path):
    colours = Registry("colour", {"zip": "zipfile:ZipFile"})
    assert colours.names() == ("zip",)
    told = tmp_path / "paints-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: paints\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[isolitmus.colours]\nred = pathlib:Path\n")
    with monkeypatch.context() as there:
        there.syspath_prepend(tmp_path)
        assert colours.names() == ("red", "zip")
        assert colours.named("red").__name__ == "Path"
    assert Registry("colour", {}).names() == ()
    with pytest.raises(UnknownName, match="unknown colour 'red'"):
        Registry("colour", {}).named("red")
