"""A test that reaches no assertion fails.

A loop over nothing, a premise that never holds, a branch that is never taken: such a test passes
whatever the code does. pytest's assertion rewriting asks at each assertion that holds whether
somebody wants to hear of it; here the question itself is counted, and the answer is no, so no
explanation is built. ``pytest.raises`` counts when it has caught what it waited for. Of a property
it is counted in how many examples an assertion was reached.
"""

import functools

import pytest
from _pytest import raises
from _pytest.assertion import rewrite

SHARE = 0.2
"""The least share of a property's examples that have to reach an assertion."""
ENOUGH = 10
"""Number of examples from which the share counts."""


class Assertions:
    """Counts the assertions that the running test has reached."""

    def __init__(self):
        self.count = 0
        self.examples = self.reaching = 0

    def install(self):
        """Count from now on, in this process."""
        rewrite._check_if_assertion_pass_impl = self.reached
        leave = raises.RaisesExc.__exit__

        @functools.wraps(leave)
        def counted(block, *error):
            caught = leave(block, *error)
            self.reached()
            return caught

        raises.RaisesExc.__exit__ = counted

    def reached(self):
        """Count an assertion that holds; return False, so that pytest builds no explanation."""
        self.count += 1
        return False

    def watch_examples(self, item):
        """Count the examples of a property, and those that reach an assertion."""
        handle = getattr(getattr(item, "obj", None), "hypothesis", None)
        if handle is None:
            return
        inner = getattr(handle.inner_test, "uncounted", handle.inner_test)

        @functools.wraps(inner)
        def counted(*args, **kwargs):
            before = self.count
            result = inner(*args, **kwargs)  # what an assumption rejects is no example
            self.examples += 1
            self.reaching += self.count > before
            return result

        counted.uncounted = inner
        handle.inner_test = counted

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        """Run a test function; fail if it passes without an assertion."""
        self.count = self.examples = self.reaching = 0
        self.watch_examples(pyfuncitem)
        result = yield
        if not self.count:
            pytest.fail("no assertion was reached", pytrace=False)
        if self.examples >= ENOUGH and self.reaching < SHARE * self.examples:
            pytest.fail(
                f"an assertion was reached in {self.reaching} of {self.examples} examples; draw"
                " those that fit",
                pytrace=False,
            )
        return result
