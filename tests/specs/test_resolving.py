"""Each kind of statement is resolved by one reader, which says so."""

from isolitmus.model.statement import Truncate
from isolitmus.specs.resolving import kinds, resolves
from isolitmus.specs.sql import KINDS


def test_no_two_readers_resolve_one_statement():
    readers = {kind.reader for kind in KINDS.values()}
    methods = [method for reader in readers for method in vars(reader).values()]
    heads = [head for method in methods for head in getattr(method, "resolves", ())]
    assert len(heads) == len(set(heads)) == len(KINDS)


def test_a_reader_that_says_what_it_resolves_is_asked_for_it():
    class Reader:
        @resolves("EMPTY", "CLEAR")
        def emptied(self):
            return Truncate("EMPTY t", "t")

    found = kinds(Reader)
    assert {*found} == {"EMPTY", "CLEAR"}
    assert found["CLEAR"].resolve(Reader()).target == "t"
