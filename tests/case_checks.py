"""Checks of many cases in one test: every case is looked at, and a failure names its case."""

import random
from collections import defaultdict

import pytest

PARTS = 5
"""Number of parts of which the seed draws one."""
SHOWN = 20
"""Number of failures that are shown in full."""


def check_cases(check, cases):
    """Check every case; fail with a sentence for each case that does not pass.

    Parameters
    ----------
    check : callable
        Takes a case, or the parts of one if it is a tuple, and asserts; what it returns is handed
        on.
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


def sample(cases, seed, whole=False, parts=PARTS):
    """Return a fifth of some cases, or one of so many parts, in their order, drawn by the seed; or
    all of them.

    Five seeds in a row, from a multiple of five on, draw every case once; the next five draw them
    otherwise.

    >>> [sample("abcdefg", seed) for seed in (0, 1, 2, 3, 4)]
    [['c', 'g'], ['d', 'e'], ['f'], ['a'], ['b']]
    """
    every = list(cases)
    turn, part = divmod(seed, parts)
    places = random.Random(turn).sample(range(len(every)), len(every))
    return [every[k] for k in sorted(places if whole else places[part::parts])]


def undrawn(items, seed):
    """Return, of the tests that are marked ``drawn``, those that the seed does not draw: of each
    module four fifths.
    """
    of_module = defaultdict(list)
    for item in items:
        if item.get_closest_marker("drawn"):
            of_module[item.path].append(item)
    stay = [item for every in of_module.values() for item in sample(every, seed)]
    return [item for every in of_module.values() for item in every if item not in stay]


sampled = pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.wide)], ids=["sample", "all"]
)
"""Runs a test of a sample; of all cases in `make conformance`."""
