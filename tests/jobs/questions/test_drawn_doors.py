"""What is said of workloads as users write them is what the model does with their expanded form.

Workloads are drawn with NULL, views, names of several parts and subqueries, as folders and as
workload files (``drawn_workloads``). The expanded form of each statement, which needs no reader of
names and views, is executed with many values and rows; no answer may be contradicted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import NamedTuple

import pytest
from condition_words import condition_holds
from drawn_workloads import SMALL, DrawnJob, DrawnWorkload, Table, Written, draw_workload

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.verdict import Forbidden
from isolitmus.specs import level, protocol
from isolitmus.specs.files.litmus_file import read_litmus

PROTOCOLS = ("delta-serializable", "delta-write-serializable")
PROMISES = ("write-serializable", "log-serializable")
TRIALS = 20


class Trial(NamedTuple):
    """Execution of expanded statements, by the name of each run."""

    test: object
    events: dict


class Mismatch(NamedTuple):
    """Answer that a run contradicts."""

    answer: object
    values: dict
    test: object


def read(drawn: DrawnWorkload, folder):
    """Return the workload as the product reads it."""
    if not drawn.as_folder:
        return read_workload(drawn.toml, "drawn")
    folder.mkdir(parents=True, exist_ok=True)
    drawn.save(folder)
    return workload(str(folder))


def writers(drawn: DrawnWorkload, work) -> dict[str, Written]:
    """Return the drawn statement of each name that the product gives to one that writes."""
    by_name = {}
    for name, job in drawn.jobs.items():
        names = [one.name for one in (*work.statements, *work.unread) if one.job == name]
        names.sort(key=lambda each: int(each.rpartition("_")[2]) if "_" in each else 0)
        if len(names) == len(job.writers):
            by_name.update(zip(names, job.writers, strict=True))
    return by_name


class Bench:
    """Litmus tests of the expanded statements of a workload; each text is read once."""

    def __init__(self, drawn: DrawnWorkload, random: Random) -> None:
        self.drawn = drawn
        self.random = random
        self.parts: dict[tuple[str, ...], object] = {}
        self.files = {table.name: [self.file() for _ in range(8)] for table in drawn.tables}

    def file(self) -> str:
        """Return VALUES of one file, of one or two rows."""

        def row() -> str:
            values = [self.random.choice(SMALL) for _ in range(3)]
            return f"({', '.join('NULL' if one is None else str(one) for one in values)})"

        return ", ".join(row() for _ in range(self.random.choice((1, 1, 2))))

    def layout(self) -> list[tuple[str, str]]:
        """Return a few files for each table."""
        return [
            (name, file)
            for name, files in self.files.items()
            for file in self.random.sample(files, self.random.choice((0, 1, 2, 2, 3)))
        ]

    def read(self, schedule: str, transactions: dict[str, str], *, inits=()):
        """Return a litmus test on empty tables, or with some first commits."""
        key = (schedule, *transactions.items(), *inits)
        if key not in self.parts:
            text = f'title = "drawn"\nschedule = "{schedule}"\n'
            for table in self.drawn.tables:
                parts = 'partitioned_by = ["part"]\n' if table.partitioned else ""
                init = ", ".join(f'"{sql}"' for name, sql in inits if name == table.name)
                text += f'[tables.{table.name}]\ncolumns = "id INT, part INT, x INT"\n{parts}'
                text += f"init = [{init}]\n"
            text += "[transactions]\n"
            text += "".join(f'{name} = "{sql}"\n' for name, sql in transactions.items())
            self.parts[key] = read_litmus(text, "drawn")
        return self.parts[key]

    def test(self, schedule: str, transactions: dict[str, str]):
        """Return a litmus test with drawn rows."""
        name = self.drawn.tables[0].name
        plain = self.read(schedule, dict.fromkeys(transactions, f"TRUNCATE TABLE {name}"))
        init = [
            one
            for table, file in self.layout()
            for one in self.read(
                "a",
                {"a": f"TRUNCATE TABLE {name}"},
                inits=((table, f"INSERT INTO {table} VALUES {file}"),),
            ).init
        ]
        statements = {
            name: self.read("a", {"a": sql}).transactions["a"] for name, sql in transactions.items()
        }
        return replace(plain, init=tuple(init), transactions=statements, text="")


def draw_values(random, *, nulls=True):
    return {p: random.choice(SMALL if nulls else SMALL[1:]) for p in ("p", "q")}


def contradiction(meeting, values, trial, *, is_read):
    """Return what a run of a pair contradicts in its answer; empty if nothing."""
    seen = trial.events["loser"].conflict
    both = not any(event.effect.footprint.empty for event in trial.events.values())
    if seen is not None and is_read and seen not in {*meeting.exceptions, *meeting.perhaps}:
        return f"{seen} is proved impossible"
    answers = [meeting]

    if meeting.not_null is not None and not any(
        condition_holds(f"{one} is NULL", values) for one in meeting.unless
    ):
        answers.append(meeting.not_null)
    for answer in answers:
        if answer.word == "unknown":
            continue
        true = all(condition_holds(words, values) for words in answer.condition)
        if seen is not None and not (answer.word in {"when", "always"} and true):
            return f"{seen} in spite of '{answer.word}'"
        if answer.certain and true and both and seen is None:
            return "no abort, which is certain"
    return ""


def schedule_of(random, names):
    """Return a schedule in which each run starts and commits."""
    steps = [name for name in names for _ in ("start", "commit")]
    random.shuffle(steps)
    return " ".join(
        f"{name}.{'commit' if name in steps[:place] else 'start'}"
        for place, name in enumerate(steps)
    )


class Comparison:
    """Answers about a drawn workload against runs of its expanded form."""

    def __init__(self, drawn: DrawnWorkload, work, seed: int) -> None:
        self.drawn, self.work = drawn, work
        self.random = Random(seed)
        self.bench = Bench(drawn, self.random)
        self.writers = writers(drawn, work)
        self.counts: Counter[str] = Counter()
        self.mismatches: list[Mismatch] = []

    def trials(self, meeting, under, number):
        """Yield executions of a pair with drawn values and rows, with the values by owner."""
        loser, winner = self.writers[meeting.loser], self.writers[meeting.winner]
        names = meeting.loser, meeting.winner + ("_2" if loser is winner else "")
        for _ in range(number):
            values = {
                name: draw_values(self.random, nulls=self.random.random() < 0.6) for name in names
            }
            if self.random.random() < 0.3:
                values[names[1]] = values[names[0]]
            statements = {
                "loser": loser.expanded(values[names[0]]),
                "winner": winner.expanded(values[names[1]]),
            }
            try:
                test = self.bench.test("loser.start winner loser.commit", statements)
                done = execute(test, protocol(under))
            except IsolitmusError:  # a MERGE with several rows for one, say
                continue
            events = {event.name: event for event in done.events}
            if events["winner"].aborted or any(one.effect.error for one in events.values()):
                continue
            yield Trial(test, events), values

    def compare_pairs(self) -> None:
        """Compare what is predicted of each pair."""
        for under in PROTOCOLS:
            for meeting in predict_workload(self.work, under).meetings:
                self.compare_pair(under, meeting)

    def compare_pair(self, under, meeting):
        if not {meeting.loser, meeting.winner} <= {*self.writers}:
            self.counts["pairs of unknown names"] += 1
            return
        apart = self.writers[meeting.loser].target != self.writers[meeting.winner].target
        self.counts[meeting.word] += 1
        self.counts["unless NULL"] += meeting.not_null is not None
        self.counts["same table"] += not apart
        self.counts["same table, decided"] += not apart and meeting.word != "unknown"
        if apart and meeting.word not in {"never", "unknown"}:
            self.mismatches.append(Mismatch((under, meeting, "different tables"), {}, ""))
        is_read = not {meeting.loser, meeting.winner} & {one.name for one in self.work.unread}
        for trial, values in self.trials(meeting, under, 2 if apart else TRIALS):
            self.counts["runs"] += 1
            self.counts["aborts"] += trial.events["loser"].conflict is not None
            problem = contradiction(meeting, values, trial, is_read=is_read)
            if problem:
                self.mismatches.append(Mismatch((under, meeting, problem), values, trial.test))
                break

    def compare_promises(self) -> None:
        """Execute two or three runs of jobs that are safe."""
        some = [one for job in self.drawn.jobs.values() for one in job.writers]
        specs = [protocol(under) for under in PROTOCOLS]
        answers = [*decide_all(self.work, specs, PROMISES, examples=False)]
        self.counts.update(f"robust {one.word}" for one in answers)
        for spec in specs:
            safe = [
                a for a in answers if a.protocol == spec.name and "safe" in {a.word, a.not_null}
            ]
            nulls = all(one.word == "safe" for one in safe)
            for _ in range(TRIALS if safe else 0):
                runs = [f"t{k}" for k in range(self.random.choice((2, 3, 3)))]
                values = {name: draw_values(self.random, nulls=nulls) for name in runs}
                statements = {
                    name: self.random.choice(some).expanded(values[name]) for name in runs
                }
                try:
                    test = self.bench.test(schedule_of(self.random, runs), statements)
                    done = run(test, spec)
                except IsolitmusError:
                    continue
                self.counts["robust runs"] += 1
                self.mismatches += [
                    Mismatch((spec.name, one.promise, "safe"), values, test)
                    for one in safe
                    if isinstance(done.verdict(level(one.promise)), Forbidden)
                ]


def check(seeds, folder):
    """Return the counts and mismatches of drawn workloads."""
    counts, mismatches = Counter(), []
    for seed in seeds:
        drawn = draw_workload(seed)
        counts["workloads"] += 1
        try:
            work = read(drawn, folder / str(seed))
        except IsolitmusError as error:
            counts[f"refused: {error}"] += 1
            continue
        compared = Comparison(drawn, work, seed)
        compared.compare_pairs()
        compared.compare_promises()
        counts += compared.counts
        counts["statements not read"] += len(work.unread)
        mismatches += [(seed, str(drawn), *one) for one in compared.mismatches]
    return counts, mismatches


@pytest.mark.slow
def test_no_answer_about_a_drawn_workload_is_contradicted(seed, tmp_path):
    counts, mismatches = check(range(seed * 5, seed * 5 + 5), tmp_path)
    assert mismatches == []
    assert counts["runs"] > 5 * TRIALS
    assert counts["same table, decided"] * 3 >= counts["same table"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "expanded", ["DELETE FROM s_alone", "INSERT INTO s_alone SELECT * FROM s_alone"]
)
def test_runs_of_something_else_contradict_an_answer(expanded):
    """A table that is read or deleted from behind the reader's back is seen in runs."""
    sql = "INSERT INTO s VALUES (1, 1, 1)"
    jobs = {
        "a": DrawnJob([sql], [Written("s_alone", sql, lambda _: expanded)]),
        "b": DrawnJob([sql], [Written("s_alone", sql, lambda _: sql.replace("s", "s_alone"))]),
    }
    drawn = DrawnWorkload([Table(None, "s", "s_alone", partitioned=False)], jobs, as_folder=False)
    compared = Comparison(drawn, read_workload(drawn.toml, "drawn"), 1)
    compared.compare_pairs()
    assert {each.answer[1].loser for each in compared.mismatches} == {"a"}
    assert {each.answer[1].word for each in compared.mismatches} == {"never"}
