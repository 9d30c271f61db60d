"""Predictions as text and as an HTML page.

The text has a grid of all pairs, the answer in one line, a legend, a sentence for each kind of
conflict, and assumptions. The page has the same, with the smallest example of each conflict as a
litmus file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.workloads.abort_examples import COMMITS, FAILS, NO_OP
from isolitmus.checker.workloads.prediction import WORDS as COMPARISONS
from isolitmus.checker.workloads.table_alterations import altering_statements
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.display import capitalized, count_of
from isolitmus.model.sql.statement import Read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.checker.workloads.prediction import JobPrediction, PairPrediction
    from isolitmus.checker.workloads.repairs import JobChange
    from isolitmus.model.workload import Workload

__all__ = [
    "alternatives",
    "assumed_lines",
    "change_lines",
    "change_words",
    "enumeration",
    "grid_row",
    "meeting_words",
    "pair_sentences",
    "prediction_head",
    "prediction_lines",
    "prediction_page",
    "prediction_rest",
    "summary_line",
    "table_grids",
    "unread_lines",
]

SIGNS = {"never": ".", "apart": "-", "unknown": "?"}
CELL = 4
"""Maximum length of a grid cell: two letters, ? and !."""
CAN_ABORT = ("always", "when")
RETRIES = {COMMITS: "succeeds", NO_OP: "is a no-op", FAILS: "fails with an error"}
"""Outcomes of a retry in words."""
LISTED = 6
"""Maximum number of statements that the answer names."""
ALTERS_NOTHING = "An ALTER TABLE or COMMENT ON that changes nothing counts as writing nothing."
IN_BETWEEN = "between its snapshot and its commit"


def prediction_lines(prediction: JobPrediction) -> Iterator[str]:
    """Yield the whole prediction: grid, answer, legend, conflicts, assumptions."""
    rows = prediction.rows
    yield from prediction_head(prediction.workload, list(rows), prediction.protocol)
    yield from (
        table_grids(prediction) if prediction.workload.schedule else map(grid_row, rows.values())
    )
    yield from prediction_rest(prediction)


def prediction_head(workload: Workload, names: Sequence[str], protocol: str) -> Iterator[str]:
    """Yield the title, the caption and the head of the grid of these statements."""
    many_statements = count_of(len(names), "statement that writes", "statements that write")
    if workload.schedule:
        yield f"Assumed: {workload.schedule}"
    yield (
        f"{workload.title}: {count_of(len(workload.job_names), 'job')}, {many_statements}, under"
        f" {protocol}"
    )
    yield ""
    if workload.schedule:
        yield "Conflicts, by table. Row: starts first, commits last. Column: commits in between."
        return
    yield "Conflicts. Row: starts first, commits last. Column: commits in between."
    cells = "  ".join(f"{name:<{_width(name)}}" for name in names)
    yield f"{'':<{max(map(len, names))}}  {cells}".rstrip()


def table_grids(prediction: JobPrediction) -> Iterator[str]:
    """Yield a grid for each table: the statements that write to it, or may if not understood.

    Statements that may concern any table are in no grid. A last line says what is proved of
    statements that write to different tables.
    """
    statements = prediction.workload.statements
    targets = {
        one.name: one.statement.target for one in statements if not isinstance(one.statement, Read)
    }
    unread = {one.name: one for one in prediction.workload.unread}
    rows = prediction.rows
    for table in dict.fromkeys(targets[name] for name in rows if name in targets):
        names = [
            name
            for name in rows
            if targets.get(name) == table
            or (name in unread and unread[name].tables and unread[name].may_concern(table))
        ]
        cells = "  ".join(f"{name:<{_width(name)}}" for name in names)
        yield ""
        yield f"{'':<{max(map(len, names))}}  {cells}".rstrip()
        for name in names:
            yield grid_row([one for one in rows[name] if one.winner in names])
    others = [
        one
        for one in prediction.meetings
        if {one.loser, one.winner} <= targets.keys() and targets[one.loser] != targets[one.winner]
    ]
    if others and all(one.word in SIGNS and one.word != "unknown" for one in others):
        yield ""
        yield "Statements that write to different tables never conflict (proved)."


def grid_row(row: Sequence[PairPrediction]) -> str:
    """Return one row of the grid: a statement, with each statement that commits in between."""
    cells = "  ".join(f"{_sign(one):<{_width(one.winner)}}" for one in row)
    return f"{row[0].loser:<{max(len(one.winner) for one in row)}}  {cells}".rstrip()


def _width(name: str) -> int:
    return max(len(name), CELL)


def prediction_rest(prediction: JobPrediction) -> Iterator[str]:
    """Yield the lines after the grid: answer, legend, a sentence for each conflict, assumptions."""
    yield ""
    yield summary_line(prediction)
    yield ""
    yield from (f"  {line}" for line in _legend(prediction.meetings))
    unread = {one.name for one in prediction.workload.unread}
    sentences = [
        line
        for loser, row in prediction.rows.items()
        if loser not in unread
        for line in _sentences(loser, [one for one in row if one.winner not in unread])
    ]
    if sentences:
        yield ""
        yield from sentences
    conditions = [meeting for meeting in prediction.meetings if meeting.condition]
    if conditions:
        yield ""
        yield (
            "Conditions on parameters are necessary: if one does not hold, the two never conflict"
            " (proved)."
        )
    if any(meeting.certain for meeting in conditions):
        yield 'If all of them hold, "always" means: if both statements write something (proved).'
    if altering_statements(prediction.workload):
        yield ""
        yield ALTERS_NOTHING
    yield ""
    yield f"Valid for {prediction.engine}."
    workload = prediction.workload
    yield from assumed_lines([one for one in workload.assumptions if one != workload.schedule])
    yield from unread_lines(prediction.workload)


def unread_lines(workload: Workload) -> Iterator[str]:
    """Yield the statements that are not understood, with the reasons; nothing if there are none."""
    if workload.unread:
        every = len(workload.unread) + len(workload.statements)
        yield ""
        yield (
            f"Not understood, {len(workload.unread)} of {count_of(every, 'statement')}; what"
            " depends on them is unknown:"
        )
        yield from (f"- {one}" for one in workload.unread)


def assumed_lines(assumptions: Sequence[str]) -> Iterator[str]:
    """Yield assumptions, one a line, under a heading; nothing if there are none."""
    if assumptions:
        yield ""
        yield "Assumptions:"
        yield from (f"- {one}" for one in assumptions)


def summary_line(prediction: JobPrediction) -> str:
    """Return the answer: how many statements can abort, and which never do."""
    rows = prediction.rows
    can = [name for name, row in rows.items() if any(m.word in CAN_ABORT for m in row)]
    unsure = [
        name
        for name, row in rows.items()
        if name not in can and any(m.word == "unknown" for m in row)
    ]
    never = [name for name in rows if name not in can and name not in unsure]
    if not can and not unsure:
        return "No statement can abort." if len(rows) > 1 else f"{never[0]} never aborts."
    if len(can) == len(rows):
        every = {1: can[0], 2: "Both statements"}.get(len(can), f"All {len(can)} statements")
        return f"{every} can abort."
    said = [f"{len(can)} of {len(rows)} statements can abort"] if can else []
    if unsure:
        said.append(f"it is unknown whether {_few(unsure, 'or')} can abort")
    if never:
        said.append(f"{_few(never, 'and')} never {'aborts' if len(never) == 1 else 'abort'}")
    return f"{'; '.join([capitalized(said[0]), *said[1:]])}."


def _few(names: Sequence[str], word: str) -> str:
    """Return the names, or their number if there are many."""
    return _joined(names, word) if len(names) <= LISTED else f"{len(names)} others"


def change_lines(changes: Sequence[JobChange]) -> Iterator[str]:
    """Yield the changes that prevent conflicts, with their effects and costs."""
    yield ""
    if not changes:
        yield "Remedies: none of the changes that were tried ends a conflict."
        return
    yield "Remedies (the effect of each was predicted anew):"
    for change in changes:
        yield f"- {capitalized(change.title)}"
        yield from (f"    {line}" for line in change_words(change))


def change_words(change: JobChange) -> Iterator[str]:
    """Yield the effects of a change, then its costs."""
    form = "if {} commits meanwhile"
    if change.is_retry:
        for loser, winners in _by_loser(change.ends).items():
            yield f"a retry of {loser} does not fail after {alternatives(winners)}"
    else:
        yield from pair_sentences(change.ends, form, "no longer aborts")
    yield from pair_sentences(change.brings, form, "can now abort")
    narrowed: dict[tuple[str, str], list[str]] = {}
    for loser, winner, when in change.narrows:
        key = loser, enumeration([_symbolic(one, loser, winner) for one in when])
        narrowed.setdefault(key, []).append(_named(loser, winner))
    for (loser, condition), winners in narrowed.items():
        yield f"{loser} conflicts with {enumeration(winners)} only if {condition}"
    yield from (f"cost: {cost}" for cost in change.costs)


def pair_sentences(pairs: Sequence[tuple[str, str]], form: str, verb: str = "") -> Iterator[str]:
    """Yield a sentence for each first statement of some pairs; ``form`` has the second ones."""
    for first, others in _by_loser(pairs).items():
        yield " ".join(word for word in (first, verb, form.format(alternatives(others))) if word)


def _by_loser(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Group pairs by their first statement."""
    found: dict[str, list[str]] = {}
    for loser, winner in pairs:
        found.setdefault(loser, []).append(_named(loser, winner))
    return found


def _named(loser: str, winner: str) -> str:
    return f"another run of {loser}" if winner == loser else winner


def alternatives(names: Sequence[str]) -> str:
    """Return names joined by "or".

    >>> alternatives(["a", "b", "c"])
    'a, b or c'
    """
    return _joined(names, "or")


def enumeration(names: Sequence[str]) -> str:
    """Return names joined by "and".

    >>> enumeration(["a", "b"])
    'a and b'
    """
    return _joined(names, "and")


def _joined(names: Sequence[str], word: str) -> str:
    *others, last = names or [""]
    return f"{', '.join(others)} {word} {last}" if others else last


def _legend(meetings: Sequence[PairPrediction]) -> Iterator[str]:
    """Yield the signs of a grid that occur, each with its meaning."""
    signs = {sign for one in meetings for sign in _sign(one)}
    meaning = {c.letter: f"can abort with {name} (example found)" for name, c in CONFLICTS.items()}
    meaning |= {
        "!": "always aborts, if both write something (proved)",
        ".": "never aborts (proved for all parameter values and rows)",
        "-": "the two never run at the same time",
        "?": "unknown: neither an example nor a proof was found",
    }
    yield from (f"{sign}  {meant}" for sign, meant in meaning.items() if sign in signs)


def _sign(meeting: PairPrediction) -> str:
    """Return the sign of a pair: letters of its exceptions, "?" for perhaps, "!" for always."""
    if meeting.word in SIGNS:
        return SIGNS[meeting.word]
    letters = (CONFLICTS[name].letter if name in CONFLICTS else "x" for name in meeting.examples)
    perhaps = "?" if meeting.perhaps else ""
    return "".join(letters) + perhaps + ("!" if meeting.word == "always" else "")


def _sentences(loser: str, meetings: Sequence[PairPrediction]) -> Iterator[str]:
    """Yield the sentences about one statement, each for all winners with the same effect."""
    alike: dict[str, list[str]] = {}
    for meeting in meetings:
        if meeting.word in (*CAN_ABORT, "unknown"):
            alike.setdefault(_sentence(meeting), []).append(_named(loser, meeting.winner))
    for k, (sentence, winners) in enumerate(alike.items()):
        yield sentence.format(alternatives(winners), "meanwhile" if k else IN_BETWEEN)


def meeting_words(meeting: PairPrediction) -> str:
    """Return when the statement aborts, with which exceptions, and the outcome of a retry."""
    return _sentence(meeting).format(_named(meeting.loser, meeting.winner), IN_BETWEEN)


def _sentence(meeting: PairPrediction) -> str:
    """Return the sentence about a pair, with placeholders for the winner and the time."""
    loser, winner = _qualified(meeting)
    commits = f"if {winner} commits {{}}"
    if meeting.word == "unknown":
        why = meeting.why.replace("{", "{{").replace("}", "}}")
        return f"{loser} perhaps aborts {commits}; unknown: {why}."
    if meeting.certain:
        aborts, some = "always aborts", ""
    else:
        values = "" if meeting.condition else "parameter values and "
        aborts, some = "can abort", f", for some {values}rows"
    said = f"{loser} {aborts} with {alternatives(meeting.exceptions)} {commits}{some}."
    if meeting.perhaps:
        said += f" Unknown: whether also with {alternatives(meeting.perhaps)}."
    ends = dict.fromkeys(RETRIES[end] for outcomes in meeting.retries.values() for end in outcomes)
    return said + (f" Retry: {alternatives(list(ends))}." if ends else "")


def _qualified(meeting: PairPrediction) -> tuple[str, str]:
    """Return the two statements with their parameter conditions; the second as a placeholder.

    >>> from isolitmus.checker.workloads.prediction import PairPrediction
    >>> same, below = "both have the same :day", "b's :x is below :y"
    >>> conditions = same, below, "a's :z is above :y", "a's :z equals b's :y"
    >>> _qualified(PairPrediction("a", "b", "when", conditions))
    ('a with :z > :y', "{} with the same :day, with :x < :y and with a's :z = b's :y")
    """
    loser, winner = meeting.loser, meeting.winner
    own: list[str] = []
    others: list[str] = []
    for condition in meeting.condition:
        text = _symbolic(condition, loser, winner)
        first, second = (f"{loser}'s ", f"{_other(loser, winner)}'s ")
        if text.startswith(first) and second not in text:
            own.append(f"with {text.removeprefix(first)}")
        elif first in text:
            others.append(f"with {text}")
        else:
            text = text.removeprefix(second).replace("both have the same", "the same")
            others.append(f"with {text}")
    return f"{loser} {enumeration(own)}".strip(), f"{{}} {enumeration(others)}".strip()


def _other(loser: str, winner: str) -> str:
    """Return the name of the concurrent statement in conditions."""
    return "the other run" if winner == loser else winner


def _symbolic(condition: str, loser: str, winner: str) -> str:
    """Return a condition on parameters with signs.

    >>> _symbolic("a's :x is below a_2's :y", "a", "a")
    "a's :x < the other run's :y"
    """
    for sign, words in COMPARISONS.items():
        condition = condition.replace(f" {words} ", f" {sign} ")
    return condition.replace(f"{loser}_2's ", "the other run's ") if winner == loser else condition


WORDS = {"apart": "never at the same time", "unknown": "unknown", "never": "never"}


def prediction_page(
    prediction: JobPrediction, made: PageOrigin, changes: Sequence[JobChange] | None = None
) -> str:
    """Return the HTML page, without scripts or external resources, and with every text escaped.

    ``changes`` are those that prevent conflicts, if they were asked for.
    """
    names = list(dict.fromkeys(meeting.loser for meeting in prediction.meetings))
    return render_template(
        "prediction.html.j2",
        prediction=prediction,
        workload=prediction.workload,
        made=made,
        names=names,
        cells={(m.loser, m.winner): m for m in prediction.meetings},
        word=_word,
        summary=summary_line(prediction),
        changes=changes,
        alters=ALTERS_NOTHING if altering_statements(prediction.workload) else "",
        change_words=change_words,
        capitalized=capitalized,
        words=meeting_words,
    )


def _word(meeting: PairPrediction) -> str:
    """Return the content of a cell of the page's table."""
    if meeting.word in WORDS:
        return WORDS[meeting.word]
    conditions = [_symbolic(one, meeting.loser, meeting.winner) for one in meeting.condition]
    when = f" if {enumeration(conditions)}" if conditions else ""
    return f"{'always' if meeting.certain else 'sometimes'}{when}"
