"""Metrics of audits in the Prometheus text exposition format.

Reference: Prometheus, Exposition formats, text-based format, version 0.0.4. The text has HELP and
TYPE lines before the samples of each metric, no timestamps, and ends with a line feed, as the
textfile collector of the node exporter needs it. A sample that can appear later, such as a kind of
finding, is there from the start with the value 0: an alert on its increase sees the first finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from isolitmus.model.audit import KINDS, REORDERED, Certainty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from isolitmus.model.audit import Audit, AuditRound

NEAR_OUTCOMES = ("ConcurrentAppendException", "ConcurrentDeleteReadException", REORDERED)
"""Outcomes of near misses."""
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
Sample = tuple[dict[str, str], float]
"""Labels and value of a sample."""


class _Metric(NamedTuple):
    """Metric: type, labels, help text without special characters, and its samples in a round."""

    kind: str
    labels: tuple[str, ...]
    help: str
    samples: Callable[[AuditRound], Iterable[Sample]]


def escape_label(value: str) -> str:
    r"""Return a label value as it stands between the quotes.

    A backslash, a quote and a line feed are escaped. An unpaired surrogate, which UTF-8 does not
    have, becomes its escape as text.

    Examples
    --------
    >>> print(escape_label('a\\b"c'))
    a\\b\"c
    """
    return value.encode("utf-8", "backslashreplace").decode("utf-8").translate(ESCAPES)


def prometheus_text(done: AuditRound) -> str:
    """Return the metrics of a round as Prometheus text.

    Parameters
    ----------
    done : AuditRound
        Audits and errors of the tables.

    Returns
    -------
    str
        Text in the exposition format 0.0.4.

    Examples
    --------
    >>> from isolitmus.model.audit import AuditRound
    >>> print(prometheus_text(AuditRound(1, 0.0, 0.5, {}, {"t": "no log"})).splitlines()[2])
    isolitmus_audit_failed{table="t"} 1
    """
    return "".join(f"{line}\n" for line in _lines(done))


def _lines(done: AuditRound) -> Iterator[str]:
    for name, metric in METRICS.items():
        samples = list(metric.samples(done))
        if not samples:
            continue
        yield f"# HELP {name} {metric.help}"
        yield f"# TYPE {name} {metric.kind}"
        for labels, value in samples:
            inside = ",".join(f'{key}="{escape_label(said)}"' for key, said in labels.items())
            yield f"{name}{{{inside}}} {value!r}" if labels else f"{name} {value!r}"


def _of_each(value: Callable[[Audit], int]) -> Callable[[AuditRound], Iterator[Sample]]:
    """Return a function that yields one sample for each audited table."""

    def samples(done: AuditRound) -> Iterator[Sample]:
        for table, audit in done.audits.items():
            yield {"table": table}, value(audit)

    return samples


def _failed(done: AuditRound) -> Iterator[Sample]:
    for table in done.tables:
        yield {"table": table}, int(table in done.errors)


def _findings(done: AuditRound) -> Iterator[Sample]:
    for table, audit in done.audits.items():
        for kind in KINDS:
            for certainty in get_args(Certainty):
                labels = {"table": table, "kind": kind, "certainty": certainty}
                yield labels, audit.counts.get((kind, certainty), 0)


def _near_misses(done: AuditRound) -> Iterator[Sample]:
    for table, audit in done.audits.items():
        counts: Mapping[str, int] = (audit.overview and audit.overview.near_counts) or {}
        known = {f"{end}, {sure}": 0 for end in NEAR_OUTCOMES for sure in get_args(Certainty)}
        for key, number in {**known, **counts}.items():
            outcome, _, certainty = key.partition(", ")
            yield {"table": table, "outcome": outcome, "certainty": certainty}, number


METRICS: Mapping[str, _Metric] = {
    "isolitmus_audit_failed": _Metric(
        "gauge",
        ("table",),
        "1 if the log of the table could not be read, so it is not audited.",
        _failed,
    ),
    "isolitmus_audit_ended": _Metric(
        "gauge",
        ("table",),
        "1 if a limit or a full disk ended the audit of the table.",
        _of_each(lambda audit: int(audit.ended is not None)),
    ),
    "isolitmus_audit_version": _Metric(
        "gauge",
        ("table",),
        "Newest audited version of the table.",
        _of_each(lambda audit: audit.last),
    ),
    "isolitmus_audit_commits": _Metric(
        "gauge", ("table",), "Audited commits of the table.", _of_each(lambda audit: audit.commits)
    ),
    "isolitmus_audit_overlapping_commits": _Metric(
        "gauge",
        ("table",),
        "Audited commits that did not see a concurrent commit.",
        _of_each(lambda audit: 0 if audit.overview is None else audit.overview.overlapping),
    ),
    "isolitmus_audit_findings": _Metric(
        "gauge",
        ("table", "kind", "certainty"),
        "Findings in the audited commits, by kind and certainty.",
        _findings,
    ),
    "isolitmus_audit_near_misses": _Metric(
        "gauge",
        ("table", "outcome", "certainty"),
        "Near misses in the audited commits, by outcome with another timing and certainty.",
        _near_misses,
    ),
    "isolitmus_audit_rounds_total": _Metric(
        "counter", (), "Looks at the logs since the start.", lambda done: [({}, done.number)]
    ),
    "isolitmus_audit_round_seconds": _Metric(
        "gauge", (), "Duration of the last look.", lambda done: [({}, round(done.seconds, 6))]
    ),
    "isolitmus_audit_round_timestamp_seconds": _Metric(
        "gauge",
        (),
        "Time of the last look, since 1970.",
        lambda done: [({}, round(done.moment, 3))],
    ),
}
"""Metrics in the order of the text, by name."""
