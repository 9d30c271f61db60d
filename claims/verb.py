"""``isolitmus claims``: statements of the documentation about isolation, checked by runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.claims import claims_file
from isolitmus.claims.claim import EDITIONS, VERDICTS
from isolitmus.claims.claim_words import claim_lines
from isolitmus.cli.options import Json, Memory, Time, read_budget, split_names
from isolitmus.cli.output import print_json, progress, say, warn
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit, near

if TYPE_CHECKING:
    from isolitmus.claims.claim import Claim
    from isolitmus.model.budget import Budget

VERIFY = "verify"


def claims(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[verify] ID",
            help=(
                "Numbers of claims (D46), or files of claims. After 'verify', their evidence is run"
                " again."
            ),
        ),
    ] = None,
    *,
    edition: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]", help=f"Only claims of these editions: {', '.join(EDITIONS)}."
        ),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            metavar="V[,V...]", help="Only claims with these verdicts: confirmed, refuted, …"
        ),
    ] = None,
    word: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only claims whose text contains this word.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]", help="With verify: engines, separated by commas; default: model."
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Without 'verify' the claims are listed; claims given by number are printed in full.

    Exit status:
      0  listed; with verify: every claim came out as recorded
      1  with verify: a run contradicts the recorded verdict
      3  with verify: a claim is undecided, an engine gave no answer, or a limit ended the work

    Examples:
      isolitmus claims --verdict refuted
      isolitmus claims D46
      isolitmus claims verify D46

    """
    within = read_budget(time, memory)
    given = names or []
    verify = given[:1] == [VERIFY]
    with within.interrupting():
        chosen = _chosen(given[1:] if verify else given)
    if edition is not None:
        wanted = _known("edition", edition, EDITIONS)
        chosen = [claim for claim in chosen if not wanted.isdisjoint(claim.editions)]
    if verdict is not None:
        verdicts = _known("verdict", verdict, VERDICTS)
        chosen = [claim for claim in chosen if claim.verdict in verdicts]
    if word is not None:
        chosen = [claim for claim in chosen if word in claim]
    if verify and not chosen:
        raise IsolitmusError(
            "no claim has that edition, verdict and word, so there is nothing to verify"
        )
    if verify:
        engines = [MODEL] if engine is None else split_names("engine", engine)
        return _verify(chosen, engines, within, as_json=as_json)
    if engine is not None:
        raise IsolitmusError("--engine needs verify; run isolitmus claims verify")
    if as_json:
        print_json([claim.to_json() for claim in chosen])
    elif given:
        for claim in chosen:
            for line in claim_lines(claim):
                say(line)
    else:
        width = max((len(claim.verdict) for claim in chosen), default=0)
        for claim in chosen:
            say(f"{claim.name:<4}  {claim.verdict:<{width}}  {claim.says}")
    return 0


def _chosen(names: list[str]) -> list[Claim]:
    """Return the claims of these numbers and files, or all claims."""
    if not names:
        return list(claims_file.claims().values())
    found: list[Claim] = []
    for name in names:
        if name.endswith(".toml"):
            found += claims_file.read_claims_file(Path(name))
        else:
            found.append(claims_file.claim(name))
    return found


def _known(option: str, text: str, known: object) -> set[str]:
    """Return the names in a comma-separated option; raise IsolitmusError if one is unknown."""
    assert isinstance(known, dict)
    asked = split_names(option, text)
    for name in asked:
        if name not in known:
            raise IsolitmusError(f"--{option} is '{name}'{near(name, known)}")
    return set(asked)


def _verify(chosen: list[Claim], engines: list[str], within: Budget, *, as_json: bool) -> int:
    """Verify claims on engines within a budget, print the results, and return the exit status."""
    from isolitmus.claims.claim_evidence import VerifiedClaim, verify_claims
    from isolitmus.conformance.engines import refuse_unable

    for name in engines:
        refuse_unable(name)
    done: list[VerifiedClaim] = []
    ended: Limit | None = None
    try:
        with within.interrupting(), progress("claims") as tell:
            for k, one in enumerate(verify_claims(chosen, engines), 1):
                done.append(one)
                tell(f"{k} of {count_of(len(chosen), 'claim')}, {one.claim.name}")
                if not as_json:
                    for line in repr(one).splitlines():
                        say(line)
    except Limit as limit:
        ended = limit
        warn(
            f"{limit}; {len(done)} of {count_of(len(chosen), 'claim')} are verified, the others are"
            " unknown"
        )
    if as_json:
        print_json([one.to_json() for one in done])
    elif done:
        ends = Counter(
            {1: "contradicted", 3: "undecided", 0: "as recorded"}[one.status] for one in done
        )
        say(
            f"{count_of(len(done), 'claim')}: "
            + ", ".join(f"{n} {end}" for end, n in ends.most_common())
            + "."
        )
    found = {one.status for one in done}
    silent = any(a.unknown for one in done for of in one.answers for a in of)
    return 1 if 1 in found else 3 if 3 in found or silent or ended is not None else 0
