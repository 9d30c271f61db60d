"""Checks of many cases in one test: every case is looked at, and a failure names its case."""

import pytest

SHOWN = 20
"""Number of failures that are shown in full."""


def check_cases(check, cases):
    """Check every case; fail with a sentence for each case that does not pass.

    Parameters
    ----------
    check : callable
        Takes a case, or the parts of one if it is a tuple, and asserts; what it returns is handed on.
    cases : iterable
        Names, or tuples that begin with one. An empty one fails.

    Returns
    -------
    list
        What the check returned of each case: how much it compared, for example.
    """
    failed, returned = [], []
    for case in cases:
        parts = case if isinstance(case, tuple) else (case,)
        try:
            returned.append(check(*parts))
        except (AssertionError, pytest.fail.Exception) as error:
            failed.append(f"{'-'.join(map(str, parts))}: {error}")
        except Exception as error:
            error.add_note(f"The case is {'-'.join(map(str, parts))}.")
            raise
    if failed:
        rest = [f"… and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
        pytest.fail("\n".join([*failed[:SHOWN], *rest]), pytrace=False)
    if not returned:
        pytest.fail("no case was checked", pytrace=False)
    return returned


def sample(cases, seed, whole, parts=5):
    """Return every fifth of some cases, other ones with the next seed, so that five seeds in a row have all; or all.

    >>> [sample("abcdefg", seed, whole=False) for seed in (0, 1, 2, 3, 4)]
    [['a', 'f'], ['b', 'g'], ['c'], ['d'], ['e']]
    """
    return [case for k, case in enumerate(cases) if whole or k % parts == seed % parts]


sampled = pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.wide)], ids=["sample", "all"]
)
"""Runs a test of a sample; of all cases in `make conformance`."""
