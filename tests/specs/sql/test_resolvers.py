"""Each kind of statement is resolved by one reader, which says so."""

from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.statement import Truncate
from isolitmus.specs.sql.functions import GIVES
from isolitmus.specs.sql.statements import KINDS, read_statement, syntax_of
from isolitmus.specs.sql.syntax import resolves, statement_readers


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

    found = statement_readers(Reader)
    assert {*found} == {"EMPTY", "CLEAR"}
    assert found["CLEAR"].resolve(Reader()).target == "t"


def test_a_text_that_is_read_on_two_tables_has_the_types_of_each():
    read = [
        read_statement(
            "INSERT INTO t SELECT a + 1 FROM t", {"t": Schema("t", (Column("a", type_),))}
        )
        for type_ in ("INT", "BIGINT")
    ]
    nodes = [[*syntax_of(statement).tree().walk()] for statement in read]
    assert [{n.meta[GIVES] for n in each if GIVES in n.meta} for each in nodes] == [
        {"INT"},
        {"BIGINT"},
    ]
