"""Predictions as text: a grid of all pairs, the answer in one line, a legend, a sentence for each
kind of conflict, and assumptions.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from isolitmus.jobs.questions.pair_prediction import COMMITS, COMPARISONS, FAILS, NO_OP
from isolitmus.jobs.questions.table_alterations import altering_statements
from isolitmus.model.delta.conflict import CONFLICTS
from isolitmus.model.display import capitalized, count_of
from isolitmus.model.sql.statement import Read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.jobs.questions.pair_prediction import JobPrediction, PairPrediction
    from isolitmus.jobs.robust.repairs import JobChange
    from isolitmus.jobs.workload import Workload

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
OTHER_TABLES = "Statements that write to different tables never conflict (proved)."


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
    rows = prediction.rows
    for names in writers_by_table(prediction).values():
        cells = "  ".join(f"{name:<{_width(name)}}" for name in names)
        yield ""
        yield f"{'':<{max(map(len, names))}}  {cells}".rstrip()
        for name in names:
            yield grid_row([one for one in rows[name] if one.winner in names])
    if are_tables_apart(prediction):
        yield ""
        yield OTHER_TABLES


def writers_by_table(prediction: JobPrediction) -> dict[str, list[str]]:
    """Return the statements that write to each table, or may as far as their tables are known."""
    targets, rows = _targets(prediction), prediction.rows
    unread = {one.name: one for one in prediction.workload.unread}
    return {
        table: [
            name
            for name in rows
            if targets.get(name) == table or (name in unread and unread[name].may_change(table))
        ]
        for table in dict.fromkeys(targets[name] for name in rows if name in targets)
    }


def are_tables_apart(prediction: JobPrediction) -> bool:
    """Return whether statements that write to different tables are proved never to conflict."""
    targets = _targets(prediction)
    others = [
        one
        for one in prediction.meetings
        if {one.loser, one.winner} <= targets.keys() and targets[one.loser] != targets[one.winner]
    ]
    return bool(others) and all(one.word in ("never", "apart") for one in others)


def _targets(prediction: JobPrediction) -> dict[str, str]:
    """Return the table that each statement writes to, by name."""
    return {
        one.name: one.statement.target
        for one in prediction.workload.statements
        if not isinstance(one.statement, Read)
    }


def grid_row(row: Sequence[PairPrediction]) -> str:
    """Return one row of the grid: a statement, with each statement that commits in between."""
    cells = "  ".join(f"{pair_sign(one):<{_width(one.winner)}}" for one in row)
    return f"{row[0].loser:<{max(len(one.winner) for one in row)}}  {cells}".rstrip()


def _width(name: str) -> int:
    return max(len(name), CELL)


def prediction_rest(prediction: JobPrediction) -> Iterator[str]:
    """Yield the lines after the grid: answer, legend, a sentence for each conflict, assumptions."""
    yield ""
    yield summary_line(prediction)
    yield ""
    meanings = sign_meanings(prediction.meetings)
    yield from (f"  {sign}  {meant}" for sign, meant in meanings.items())
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
    conditions = [meeting.plain for meeting in prediction.meetings if meeting.plain.condition]
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
    yield from assumed_lines([one for one in prediction.assumptions if one != workload.schedule])
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
        key = loser, enumeration([symbolic_condition(one, loser, winner) for one in when])
        narrowed.setdefault(key, []).append(named_winner(loser, winner))
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
        found.setdefault(loser, []).append(named_winner(loser, winner))
    return found


def named_winner(loser: str, winner: str) -> str:
    """Return the name of a concurrent statement, or "another run" of the same one."""
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


def sign_meanings(meetings: Sequence[PairPrediction]) -> dict[str, str]:
    """Return the signs of a grid that occur, each with its meaning."""
    signs = {sign for one in meetings for sign in pair_sign(one)}
    meaning = {c.letter: f"can abort with {name} (example found)" for name, c in CONFLICTS.items()}
    meaning |= {
        "!": "always aborts, if both write something (proved)",
        ".": "never aborts (proved for all parameter values and rows)",
        "-": "the two never run at the same time",
        "?": "unknown: neither an example nor a proof was found",
        "n": "unless a parameter is NULL (below)",
    }
    return {sign: meant for sign, meant in meaning.items() if sign in signs}


def pair_sign(meeting: PairPrediction) -> str:
    """Return the sign of a pair: letters of its exceptions, "?" for perhaps, "!" for always, "n"
    for an answer that NULL changes.
    """
    if meeting.not_null is not None:
        return f"{pair_sign(replace(meeting.plain, unless=(), not_null=None))}n"
    if meeting.word in SIGNS:
        return SIGNS[meeting.word]
    letters = (CONFLICTS[name].letter if name in CONFLICTS else "x" for name in meeting.exceptions)
    perhaps = "?" if meeting.perhaps else ""
    return "".join(letters) + perhaps + ("!" if meeting.word == "always" else "")


def _sentences(loser: str, meetings: Sequence[PairPrediction]) -> Iterator[str]:
    """Yield the sentences about one statement, each for all winners with the same effect."""
    alike: dict[str, list[str]] = {}
    for meeting in meetings:
        if meeting.word in (*CAN_ABORT, "unknown"):
            alike.setdefault(meeting_sentence(meeting), []).append(
                named_winner(loser, meeting.winner)
            )
    for k, (sentence, winners) in enumerate(alike.items()):
        yield sentence.format(alternatives(winners), "meanwhile" if k else IN_BETWEEN)


def meeting_words(meeting: PairPrediction) -> str:
    """Return when the statement aborts, with which exceptions, and the outcome of a retry."""
    return meeting_sentence(meeting).format(named_winner(meeting.loser, meeting.winner), IN_BETWEEN)


def meeting_sentence(meeting: PairPrediction) -> str:
    """Return the sentence about a pair, with placeholders for the winner and the time."""
    plain = meeting.plain
    loser, winner = _qualified(plain)
    commits = f"if {winner} commits {{}}"
    why = meeting.why.replace("{", "{{").replace("}", "}}")
    unless = alternatives([_symbolic_owner(one, meeting) for one in meeting.unless])
    if meeting.word == "unknown":
        if unless:
            return f"{loser} never aborts {commits}, unless {unless} is NULL; then unknown: {why}."
        return f"{loser} perhaps aborts {commits}; unknown: {why}."
    always = meeting.certain if plain.word == "never" else plain.certain
    if always:
        aborts, some = "always aborts", ""
    else:
        values = "" if plain.condition else "parameter values and "
        aborts, some = "can abort", f", for some {values}rows"
    aborts = f"{aborts} with {alternatives(meeting.exceptions)}"
    if plain.word == "never":
        others = [one for one in meeting.condition if not one.endswith(" is NULL")]
        words = [symbolic_condition(one, meeting.loser, meeting.winner) for one in others]
        also = f" if {enumeration(words)}" if words else ""
        some = "" if always else ", for some values and rows"
        said = f"{loser} never aborts {commits}, unless {unless} is NULL:"
        said += f" then it {aborts}{also}{some}."
    elif unless:
        beside = "" if always or not plain.condition else "; without this condition, too"
        said = f"{loser} {aborts} {commits}{some}, unless {unless} is NULL{beside}."
    else:
        said = f"{loser} {aborts} {commits}{some}."
    if meeting.perhaps:
        said += f" Unknown: whether also with {alternatives(meeting.perhaps)}."
    ends = dict.fromkeys(RETRIES[end] for outcomes in meeting.retries.values() for end in outcomes)
    return said + (f" Retry: {alternatives(list(ends))}." if ends else "")


def _symbolic_owner(parameter: str, meeting: PairPrediction) -> str:
    """Return a parameter with its owner, which is "the other run" for another run of itself."""
    return symbolic_condition(f"{parameter} ", meeting.loser, meeting.winner).strip()


def _qualified(meeting: PairPrediction) -> tuple[str, str]:
    """Return the two statements with their parameter conditions; the second as a placeholder.

    >>> from isolitmus.jobs.questions.pair_prediction import PairPrediction
    >>> same, below = "both have the same :day", "b's :x is below :y"
    >>> conditions = same, below, "a's :z is above :y", "a's :z equals b's :y"
    >>> _qualified(PairPrediction("a", "b", "when", conditions))
    ('a with :z > :y', "{} with the same :day, with :x < :y and with a's :z = b's :y")
    """
    loser, winner = meeting.loser, meeting.winner
    own: list[str] = []
    others: list[str] = []
    for condition in meeting.condition:
        text = symbolic_condition(condition, loser, winner)
        first, second = (f"{loser}'s ", f"{_other(loser, winner)}'s ")
        if text.startswith(first) and not _has(text, second):
            own.append(f"with {text.removeprefix(first)}")
        elif _has(text, first):
            others.append(f"with {text}")
        else:
            text = text.removeprefix(second).replace("both have the same", "the same")
            others.append(f"with {text}")
    return f"{loser} {enumeration(own)}".strip(), f"{{}} {enumeration(others)}".strip()


def _has(text: str, words: str) -> bool:
    """Return whether a text has words that no longer name ends with."""
    return re.search(rf"(?<!\w){re.escape(words)}", text) is not None


def _other(loser: str, winner: str) -> str:
    """Return the name of the concurrent statement in conditions."""
    return "the other run" if winner == loser else winner


def symbolic_condition(condition: str, loser: str, winner: str) -> str:
    """Return a condition on parameters with signs.

    >>> symbolic_condition("a's :x is below a_2's :y", "a", "a")
    "a's :x < the other run's :y"
    """
    for sign, words in COMPARISONS.items():
        condition = re.sub(f" {words} (?!NULL)", f" {sign} ", condition)
    other = rf"(?<!\w){re.escape(loser)}_2's "
    return re.sub(other, "the other run's ", condition) if winner == loser else condition
