"""Read sets of commits as far as a log shows them, and files that match a condition.

The read set of a commit is nothing, the rows of a condition, partitions, or unknown. The premise of
each rule is that ``commitInfo`` is true, and that the command is one of Delta's (docs/statements.md
lists what each reads; DeltaOperations.scala what it logs):

- a blind append read nothing;
- DELETE and UPDATE read the rows of their predicate (and UPDATE those of subqueries in SET, which
  no log shows);
- TRUNCATE, a static overwrite, REPLACE TABLE, a complete streaming batch, ADD CONSTRAINT and a
  MERGE with WHEN NOT MATCHED BY SOURCE without condition read every row;
- an overwrite with a predicate reads the rows of the predicate, a dynamic one the partitions of the
  files that it adds;
- of any other MERGE, an INSERT … SELECT from its own table, and everything else that is not blind,
  the log does not record the reads;
- OPTIMIZE, REORG and similar operations move rows and read none, and neither does a commit that
  only changes metadata.

The rows of a file match a condition, as far as the log shows: all, none, or perhaps.

A commit logs its condition as text. Spark writes expressions with ids (``(part#12 = 0)``) and
strings without quotes, so that a string could look like more of the condition. A text with ids is
therefore used only if it compares whole numbers, or is one comparison with one word. Everything
outside the fragment (columns compared with literals, IN, IS NULL, AND, OR, NOT) may have any value.

The condition on a row is true, false or NULL. For a file, the analysis computes which of the three
its rows may give: exactly from partition values, by bounds from statistics (of whole numbers and
dates; those of strings are truncated). *All* and *none* are certain. *All* of no rows means
nothing, so `count_live_rows` counts the rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from isolitmus.specs.disk.input_files import is_deeper, read_json
from isolitmus.specs.sql.quiet_sqlglot import parse_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.model.delta.log import LogCommit, LogFile, LogMetadata

FileMatch = Literal["all", "none", "perhaps"]
"""Part of a file's rows that match a condition: all, none, or perhaps some."""
Scalar = int | str

# possible truth values of a condition on the rows of a file: a union of these bits
TRUE, FALSE, NULL = 1, 2, 4
ANY = TRUE | FALSE | NULL

ID = re.compile(r"(?<=\w)#\d+L?\b")
"""Expression id that Spark appends to column names."""
ONE_WORD = re.compile(r"\(?(\w+)#\d+L? (=|<=>) ([\w.:+-]+)\)?")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
WHOLE = ("byte", "short", "integer", "long")
LONGEST = 10_000
"""Maximum length of a condition that is parsed, in characters."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition on rows.

    ``tree`` is None if the condition is not understood; then it may have any value.
    """

    text: str
    tree: exp.Expr | None

    @property
    def shown(self) -> str:
        """Text without the ids of its columns."""
        return ID.sub("", self.text)


EVERYTHING = Condition("true", exp.Boolean(this=True))


@lru_cache(maxsize=512)
def read_condition(text: str) -> Condition:
    """Return the condition that a text states.

    >>> read_condition("(part#12 = 0)").tree.sql()
    '(part = 0)'
    >>> read_condition("(name#3 = a) OR (id#4 = 2)").tree is None
    True
    """
    if len(text) > LONGEST:
        return Condition(text, None)
    bare, ids = ID.subn("", text)
    one = ONE_WORD.fullmatch(text)
    if one is not None and not one[3].isdigit():
        return Condition(text, _one_word(*one.groups()))
    return Condition(text, _parsed(bare, ids))


@lru_cache(maxsize=512)
def _parsed(bare: str, ids: int) -> exp.Expr | None:
    """Return the tree of a text without its ids; None if its meaning is uncertain.

    The ids differ in each commit.
    """
    try:
        tree = parse_one(bare, "databricks")
    except SqlglotError:
        return None
    if is_deeper(tree, methodcaller("iter_expressions")):
        return None
    if ids and (len(list(tree.find_all(exp.Column))) != ids or tree.find(exp.Dot)):
        return None
    if ids and any(literal.is_string for literal in tree.find_all(exp.Literal)):
        return None
    return tree


def _one_word(name: str, sign: str, word: str) -> exp.Expr | None:
    """Return a comparison with an unquoted word; None for NULL, true and false."""
    if word.lower() in ("null", "true", "false"):
        return None
    compare = exp.EQ if sign == "=" else exp.NullSafeEQ
    return compare(this=exp.column(name), expression=exp.Literal.string(word))


def partition_conditions(
    condition: Condition, metadata: LogMetadata
) -> tuple[Condition, ...] | None:
    """Return the parts of a condition on partition columns only; None if not understood.

    Delta compares these with files that a concurrent commit added.

    >>> from isolitmus.model.delta.log import LogMetadata
    >>> table = LogMetadata({"part": ("part", "integer"), "id": ("id", "integer")}, ("part",))
    >>> condition = read_condition("((part#1 = 0) AND (id#2 = 5))")
    >>> [one.tree.sql() for one in partition_conditions(condition, table)]
    ['part = 0']
    """
    if condition.tree is None:
        return None
    known = {name.lower() for name in metadata.partitioned_by}
    return tuple(
        Condition(condition.text, part)
        for part in _conjuncts(condition.tree)
        if all(column.name.lower() in known for column in part.find_all(exp.Column))
    )


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conjuncts of a condition, without parentheses."""
    match tree:
        case exp.Paren():
            yield from _conjuncts(tree.this)
        case exp.And():
            yield from _conjuncts(tree.left)
            yield from _conjuncts(tree.right)
        case _:
            yield tree


def match_file(condition: Condition, file: LogFile, metadata: LogMetadata) -> FileMatch:
    """Return which rows of a file match a condition.

    >>> from isolitmus.model.delta.log import LogFile, LogMetadata
    >>> table = LogMetadata({"part": ("part", "integer")}, ("part",))
    >>> file = LogFile("f", partition={"part": "0"})
    >>> [match_file(read_condition(f"(part#1 {c})"), file, table) for c in ("= 0", "> 0", "= x#2")]
    ['all', 'none', 'perhaps']
    """
    if condition.tree is None:
        return "perhaps"
    truth = _Truth(file, metadata)
    if "#" in condition.text and not ONE_WORD.fullmatch(condition.text):
        kinds = [truth.kind(column) for column in condition.tree.find_all(exp.Column)]
        if not all(kind in WHOLE for kind in kinds):
            return "perhaps"
    may = truth.of(condition.tree)
    return "all" if may == TRUE else "perhaps" if may & TRUE else "none"


def count_live_rows(file: LogFile) -> int | None:
    """Return a file's number of rows that are not deleted; None if the log does not record it."""
    rows = _stats(file.stats).get("numRecords")
    return rows - file.marked if isinstance(rows, int) else None


@lru_cache(maxsize=4096)
def _stats(text: str | None) -> dict[str, Any]:
    """Return the statistics of a file from their JSON text; empty if it is no JSON object."""
    try:
        stats = read_json(text) if text else {}
    except ValueError:
        return {}
    return stats if isinstance(stats, dict) else {}


def _part(stats: dict[str, Any], name: str) -> dict[str, Any]:
    part = stats.get(name)
    return part if isinstance(part, dict) else {}


@dataclass(frozen=True, slots=True)
class _Range:
    """Bounds of a column's values in a file.

    ``nulls`` says whether none, some or all of the rows may be NULL.
    """

    low: Scalar
    high: Scalar
    nulls: Literal["none", "some", "all"]


class _Truth:
    """Evaluation of a condition on all rows of one file.

    A result is a bit mask: the union of `TRUE`, `FALSE` and `NULL` for the values that rows may
    give.
    """

    def __init__(self, file: LogFile, metadata: LogMetadata) -> None:
        self.file = file
        self.metadata = metadata

    def kind(self, tree: exp.Expr) -> str | None:
        """Return the type of a column; None if the tree is no known column."""
        if not isinstance(tree, exp.Column) or tree.table:
            return None
        _, kind = self.metadata.types.get(tree.name.lower(), ("", None))
        return kind

    def of(self, tree: exp.Expr) -> int:
        """Return the possible values of a condition; ANY if its form is unsupported."""
        match tree:
            case exp.Paren():
                return self.of(tree.this)
            case exp.Boolean():
                return TRUE if tree.this else FALSE
            case exp.And():
                return _both(self.of(tree.left), self.of(tree.right), _and)
            case exp.Or():
                return _both(self.of(tree.left), self.of(tree.right), _or)
            case exp.Not():
                return _not(self.of(tree.this))
            case exp.Is() if isinstance(tree.expression, exp.Null):
                return self.null(tree.this)
            case exp.Anonymous() if len(tree.expressions) == 1:
                of = self.null(tree.expressions[0])
                name = str(tree.this).lower()
                return {"isnull": of, "isnotnull": _not(of)}.get(name, ANY)
            case exp.In() if tree.expressions and not tree.args.get("query"):
                whole = FALSE
                for choice in tree.expressions:
                    whole = _both(whole, self.compare(exp.EQ, tree.this, choice), _or)
                return whole
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self.compare(type(tree), tree.left, tree.right)
            case exp.NullSafeEQ():
                of = self.compare(exp.EQ, tree.left, tree.right)
                return (of & ~NULL) | (FALSE if of & NULL else 0)
            case _:
                return ANY

    def null(self, tree: exp.Expr) -> int:
        """Return the possible values of ``tree IS NULL``."""
        values = self.values(tree)
        if values is None:
            return ANY
        return {"none": FALSE, "some": TRUE | FALSE, "all": TRUE}[values.nulls]

    def compare(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> int:
        """Return the possible values of a comparison of a column with a literal, else ANY."""
        if isinstance(right, exp.Column):
            kind, left, right = TURNED.get(kind, kind), right, left
        values, value = self.values(left), self.literal(right)
        if values is None or value is None:
            return ANY
        if values.nulls == "all":
            return NULL
        low, high = values.low, values.high
        if type(value) is not type(low):
            return ANY
        if self.kind(left) == "date" and not DATE.fullmatch(str(value)):
            return ANY
        may = _compare(kind, low, high, value)
        return may | (NULL if values.nulls == "some" else 0)

    def literal(self, tree: exp.Expr) -> Scalar | None:
        """Return the value of a string or whole-number literal, else None."""
        if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
            value = self.literal(tree.this)
            return -value if isinstance(value, int) else None
        if not isinstance(tree, exp.Literal):
            return None
        if tree.is_string:
            return str(tree.this)
        return int(tree.this) if tree.this.isdigit() else None

    def values(self, tree: exp.Expr) -> _Range | None:
        """Return the range of a column's values; None if nothing is known."""
        kind = self.kind(tree)
        if kind is None or kind not in (*WHOLE, "string", "date"):
            return None
        name = tree.name.lower()
        physical, _ = self.metadata.types[name]
        if name in (column.lower() for column in self.metadata.partitioned_by):
            return self.partition(physical, kind)
        return self.bounds(physical, kind)

    def partition(self, physical: str, kind: str) -> _Range | None:
        """Return the range of a partition column, which has one value; None if it is unknown."""
        values = self.file.partition
        if values is None or physical not in values:
            return None
        value = values[physical]
        if value is None or value == "":
            return _Range(0, 0, "all")
        known = _typed(value, kind)
        return None if known is None else _Range(known, known, "none")

    def bounds(self, physical: str, kind: str) -> _Range | None:
        """Return the range of a column by the file's statistics; None if it is unknown."""
        stats = _stats(self.file.stats)
        nulls = _part(stats, "nullCount").get(physical)
        if nulls is not None and nulls == stats.get("numRecords"):
            return _Range(0, 0, "all")
        low, high = (
            _typed(_part(stats, side).get(physical), kind) for side in ("minValues", "maxValues")
        )
        if low is None or high is None or kind == "string":
            return None
        return _Range(low, high, "none" if nulls == 0 else "some")


TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
"""Comparison operators with swapped sides."""


def _typed(value: object, kind: str) -> Scalar | None:
    """Return a logged value as an int or str by its type; None if it has another form."""
    if kind in WHOLE:
        text = str(value)
        return int(text) if re.fullmatch(r"-?\d{1,19}", text) else None
    if not isinstance(value, str) or (kind == "date" and not DATE.fullmatch(value)):
        return None
    return value


def _compare(kind: type[exp.Expr], low: Any, high: Any, value: Any) -> int:
    """Return the possible values of a comparison for values between low and high."""
    match kind:
        case exp.EQ:
            true, false = low <= value <= high, not low == high == value
        case exp.NEQ:
            true, false = not low == high == value, low <= value <= high
        case exp.LT:
            true, false = low < value, high >= value
        case exp.LTE:
            true, false = low <= value, high > value
        case exp.GT:
            true, false = high > value, low <= value
        case _:
            true, false = high >= value, low < value
    return (TRUE if true else 0) | (FALSE if false else 0)


def _both(a: int, b: int, join: Callable[[int, int], int]) -> int:
    """Return the possible values of ``join`` for operands with these possible values."""
    whole = 0
    for x in (TRUE, FALSE, NULL):
        for y in (TRUE, FALSE, NULL):
            if a & x and b & y:
                whole |= join(x, y)
    return whole


def _and(x: int, y: int) -> int:
    return FALSE if FALSE in (x, y) else NULL if NULL in (x, y) else TRUE


def _or(x: int, y: int) -> int:
    return TRUE if TRUE in (x, y) else NULL if NULL in (x, y) else FALSE


def _not(a: int) -> int:
    return (FALSE if a & TRUE else 0) | (TRUE if a & FALSE else 0) | (a & NULL)


@dataclass(frozen=True, slots=True)
class CommitReads:
    """Read set of a commit; ``kind`` says what it consists of.

    "rows": rows that satisfy all of ``conditions``. "partitions": all rows of ``partitions``, each
    given as pairs of column and value.
    """

    kind: Literal["nothing", "rows", "partitions", "unknown"]
    conditions: tuple[Condition, ...] = ()
    partitions: frozenset[tuple[tuple[str, str | None], ...]] = frozenset()

    @property
    def everything(self) -> bool:
        """True if every row was read."""
        return self.kind == "rows" and all(c.text == "true" for c in self.conditions)


NOTHING = CommitReads("nothing")
UNKNOWN = CommitReads("unknown")
ALL_ROWS = CommitReads("rows", (EVERYTHING,))

MOVES = ("OPTIMIZE", "REORG", "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL", "COMPUTE STATS")
"""Operations that may add and remove files, but no rows."""
DELTA = re.compile(r"Delta-Lake/(\d+)\.(\d+)\.")
REPLACES = (
    "CREATE OR REPLACE TABLE AS SELECT",
    "REPLACE TABLE AS SELECT",
    "CREATE OR REPLACE TABLE",
    "REPLACE TABLE",
    "TRUNCATE",
    "ADD CONSTRAINT",
)
CHANGES = ("DELETE", "UPDATE", "MERGE", "WRITE", "STREAMING UPDATE", *REPLACES)
"""Operations that may read even if they add and remove nothing."""


def only_moves_data(commit: LogCommit) -> bool:
    """Return whether a commit has file actions, and says that none of them changes data."""
    return bool(commit.adds or commit.removes) and not commit.changes_rows


def read_set_of(commit: LogCommit, metadata: LogMetadata) -> CommitReads:
    """Return the read set of a commit; ``metadata`` is the table's at that commit.

    >>> from isolitmus.model.delta.log import LogCommit, LogMetadata
    >>> delete = {"operation": "DELETE", "operationParameters": {"predicate": '["(id#1 = 5)"]'}}
    >>> [c.text for c in read_set_of(LogCommit(1, delete), LogMetadata()).conditions]
    ['(id#1 = 5)']
    """
    operation = (commit.operation or "").upper()
    if commit.blind and not commit.removes:
        return NOTHING
    if operation in MOVES and not commit.changes_rows:
        return NOTHING
    if operation not in CHANGES and not (commit.adds or commit.removes or commit.changes):
        return NOTHING
    said = commit.parameters
    match operation:
        case "DELETE" | "UPDATE":
            return _predicate(said.get("predicate"))
        case "MERGE":
            return _merge(said.get("notMatchedBySourcePredicates"))
        case "STREAMING UPDATE":
            return ALL_ROWS if said.get("outputMode") == "Complete" else UNKNOWN
        case "WRITE" if said.get("mode") == "Overwrite":
            return _overwrite(commit, metadata)
        case _ if operation in REPLACES:
            return ALL_ROWS
        case _:
            return UNKNOWN


def _predicate(said: object) -> CommitReads:
    """Return the rows of a predicate: older releases log a text, newer ones a JSON list of
    texts.
    """
    if not isinstance(said, str) or not said.strip():
        return UNKNOWN
    texts: list[object] = [said]
    if said.startswith("["):
        try:
            texts = read_json(said)
        except ValueError:
            return UNKNOWN
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return UNKNOWN
    return CommitReads("rows", tuple(read_condition(str(text)) for text in texts) or (EVERYTHING,))


def _merge(said: object) -> CommitReads:
    """Return the read set of a MERGE with these clauses: all rows if one has no predicate."""
    try:
        clauses = read_json(said) if isinstance(said, str) else []
    except ValueError:
        return UNKNOWN
    if not isinstance(clauses, list):
        return UNKNOWN
    bare = any(isinstance(clause, dict) and "predicate" not in clause for clause in clauses)
    return ALL_ROWS if bare else UNKNOWN


def _overwrite(commit: LogCommit, metadata: LogMetadata) -> CommitReads:
    """Return the read set of an overwrite; a static overwrite logs no predicate.

    Releases before 4.1 do not log whether an overwrite is dynamic. Without partitions this does not
    matter, and an overwrite that removes from partitions to which it adds nothing is static.
    """
    said = commit.parameters
    if said.get("replaceOnCond") or said.get("replaceUsingCols"):
        return UNKNOWN
    if said.get("predicate"):
        return _predicate(said["predicate"])
    partitions = [file.partition for file in commit.adds]
    keys = frozenset(tuple(sorted(p.items())) for p in partitions if p is not None)
    dynamic = str(said.get("isDynamicPartitionOverwrite", "")).lower()
    if dynamic == "true":
        return UNKNOWN if None in partitions else CommitReads("partitions", partitions=keys)
    removed = [file.partition for file in commit.removes]
    static = any(p is not None and tuple(sorted(p.items())) not in keys for p in removed)
    known = dynamic == "false" or not metadata.partitioned_by or (static and None not in partitions)
    return ALL_ROWS if known or _logs_dynamic(commit) else UNKNOWN


def _logs_dynamic(commit: LogCommit) -> bool:
    """Return whether the writer logs that an overwrite is dynamic (Delta 4.1 or later)."""
    release = DELTA.search(commit.engine or "")
    return release is not None and (int(release[1]), int(release[2])) >= (4, 1)


def is_checked(commit: LogCommit) -> bool:
    """Return whether a commit's writer makes Delta's conflict check at the level that it logs.

    Spark and Databricks do. Other programs log no level, or check less (Delta Kernel).
    """
    engine = commit.engine or ""
    known = not engine or engine.startswith(("Apache-Spark/", "Databricks-Runtime/"))
    return known and commit.level is not None


def describe_commit(commit: LogCommit) -> str:
    """Return a commit in words: ``version 3 (DELETE)``."""
    return f"version {commit.version}" + (f" ({commit.operation})" if commit.operation else "")
