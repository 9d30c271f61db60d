"""Conflicts that a recorded run injects: at which statements, how often, of which class."""

import contextlib
import sys

import pytest

from isolitmus.jobs.readers.recorded_functions import MOST_CONFLICTS
from isolitmus.jobs.recording.conflicts import (
    MARK,
    Conflicts,
    _is_protected,
    caused_by_conflict,
)
from isolitmus.jobs.recording.path_choices import PathChoices


class Lost(Exception):
    """Conflict of a test."""


setattr(Lost, MARK, True)


class Raising(Conflicts):
    """Conflicts whose exceptions need no JVM."""

    def _exception(self, name):
        return Lost(name)


def paths(program, text="", most=40):
    """Return what happens on each path of a program, which is called with a statement."""
    choices, found = PathChoices(), []
    while len(found) < most:
        events = []
        conflicts = Raising(choices, text, sys._getframe())

        def execute(name, conflicts=conflicts, events=events):
            error = conflicts.next_abort(name)
            events.append(f"{error}" if error else name)
            if error is not None:
                raise error

        try:
            program(execute)
        except Lost as error:
            events.append("stopped" if caused_by_conflict(error) else "raised")
        found.append(" ".join(events))
        if not choices.advance():
            break
    return found


FIRST = "ConcurrentAppendException"


def test_a_statement_without_a_handler_does_not_abort():
    def program(execute):
        execute("a")
        for _ in range(3):
            execute("b")

    assert paths(program) == ["a b b b"]


def test_a_handler_is_a_path():
    def program(execute):
        try:
            execute("a")
        except Lost:
            execute("fallback")

    assert paths(program) == ["a", f"{FIRST} fallback"]


def test_what_stands_after_a_try_is_a_path():
    def program(execute):
        with contextlib.suppress(Lost):
            execute("a")
        try:
            execute("b")
        finally:
            execute("c")

    assert paths(program) == [
        "a b c", f"a {FIRST} c stopped", f"{FIRST} b c", f"{FIRST} {FIRST} c stopped",
    ]  # fmt: skip


def test_a_loop_that_gives_up_reaches_what_follows():
    def program(execute):
        for _ in range(3):
            try:
                execute("a")
            except Lost:
                continue
            break
        else:
            execute("given up")

    again = f"{FIRST} {FIRST} {FIRST} given up"
    assert paths(program) == ["a", f"{FIRST} a", again]


def test_a_loop_that_retries_for_ever_meets_a_limit():
    def program(execute):
        while True:
            try:
                return execute("a")
            except Lost:
                pass

    always = " ".join([FIRST] * MOST_CONFLICTS)
    assert paths(program) == ["a", f"{FIRST} a", f"{always} a"]


def test_the_classes_that_a_program_names_have_paths_of_their_own():
    def program(execute):
        try:
            execute("a")
        except Lost as error:
            if str(error) == "ConcurrentDeleteReadException":
                execute("fallback")
            raise

    text = "except ConcurrentDeleteReadException: … DELTA_METADATA_CHANGED"
    assert paths(program, text) == [
        "a", f"{FIRST} stopped", "MetadataChangedException stopped",
        "ConcurrentDeleteReadException fallback stopped",
    ]  # fmt: skip


def fail(kind):
    raise kind


def test_an_exception_that_follows_from_a_conflict_ends_a_path_and_a_mistake_does_not():
    def wrapped():
        try:
            fail(Lost)
        except Lost as error:
            raise RuntimeError("given up") from error

    def mistaken():
        try:
            fail(Lost)
        except Lost:
            return next(iter(()))

    def plain():
        raise RuntimeError

    found = []
    for one in (wrapped, mistaken, plain):
        with pytest.raises((RuntimeError, StopIteration)) as raised:
            one()
        found.append(caused_by_conflict(raised.value))
    assert found == [True, False, False]


def probe():
    frame = sys._getframe(1)
    return _is_protected(frame.f_code, frame.f_lasti)


def test_a_handler_protects_its_try_and_not_itself():
    def in_try():
        try:
            return 1 and probe()
        except ValueError:
            return None

    def in_handler():
        try:
            fail(ValueError)
        except ValueError as error:
            return error and probe()

    def in_both():
        try:
            try:
                fail(ValueError)
            except ValueError:
                return 1 and probe()
        finally:
            fail.__doc__ = ""

    assert [probe(), in_try(), in_handler(), in_both()] == [False, True, False, True]
