"""Tests as they are printed: an example counts only if its text has the outcome that it prints.

A test that a search executes consists of resolved statements. Its text is read again as a litmus
file, by the reader that ``isolitmus run`` uses, and executed: what the text cannot say, such as a
default of a column, makes it no example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import same_bag
from isolitmus.specs.files.litmus_file import read_litmus

if TYPE_CHECKING:
    from isolitmus.model.spec import Spec


def printed_test_problem(test: Litmus, spec: Spec) -> str | None:
    """Return why the text of a test does not have the outcomes and tables that it expects.

    None if it has them.

    Parameters
    ----------
    test : Litmus
        Test with the outcomes that it expects under the protocol.
    spec : Spec
        The commit protocol.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from isolitmus.model.litmus import Expectation
    >>> from isolitmus.specs import litmus, protocol
    >>> spec, test = protocol("delta-serializable"), litmus("reorder")
    >>> for outcome in ("committed", "no-op"):
    ...     expect = {spec.name: Expectation(outcome={"insert": (outcome,)})}
    ...     print(printed_test_problem(replace(test, expect=expect), spec))
    None
    the text of the example ends otherwise: insert committed
    """
    expected = test.expect[spec.name]
    try:
        printed = read_litmus(str(test), test.name)
        assert isinstance(printed, Litmus), "a test on tables"
        ended = observed_run(printed, execute(printed, spec), spec.name)
    except Disagreement:
        raise
    except IsolitmusError as problem:
        return f"the text of the example is not executed: {str(problem).partition(chr(10))[0]}"
    for name, outcomes in expected.outcome.items():
        if ended.transactions[name].outcome not in outcomes:
            return (
                f"the text of the example ends otherwise: {name} {ended.transactions[name].outcome}"
            )
    for table, rows in (expected.tables or {}).items():
        if not same_bag(ended.versions[-1][table], rows):
            return f"the text of the example ends with another table {table}"
    return None
