"""Both branches of a dbt model: the query of its first run, and that of an incremental run.

``compiled_code`` in the manifest is one of them: dbt decides ``is_incremental()`` when it compiles,
by whether the table exists. The template ``raw_code`` is therefore read as a sequence of pieces:
text, values that the manifest determines (``ref``, ``source``, ``this``), other values, and blocks
of ``{% if is_incremental() %}``. The sequence of a branch is compared with the compiled code, as a
pattern in which other values match anything. The branch that matches alone is the compiled one, and
the other one is derived from it, if the blocks in which they differ have no other values.

Templates are parsed and never evaluated. Blanks are ignored in comparisons.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, TemplateSyntaxError, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode

IS_INCREMENTAL = "macro.dbt.is_incremental"
RUN_VALUES = ("var", "env_var", "run_started_at", "invocation_id", "modules")
"""Names of a template whose values differ between invocations."""
OTHER_LOGIC = (
    "its template has other logic beside is_incremental(), so it is unknown which branch"
    " compiled_code is; write is_incremental() only in {% if is_incremental() %} … {% endif %}"
)
RUN_VALUE = re.compile(r"\b(?:var|env_var)\s*\(|\b(?:run_started_at|invocation_id|modules)\b")
COMPARED = re.compile(r"(?:[=<>]|\b(?:between|and))\s*\Z", re.IGNORECASE)
"""End of a text before a value that is compared."""
ENVIRONMENT = Environment(extensions=["jinja2.ext.do"], autoescape=True)
"""Parser of templates; none is rendered."""


class Branches(NamedTuple):
    """Queries of a model on its first run and on an incremental run; None if not known."""

    first: str | None
    incremental: str | None
    problem: str = ""
    """Why a branch is not known."""
    varies: bool = False
    """Whether its text may depend on variables, the clock or macros of the invocation."""


class _Piece(NamedTuple):
    """Part of a template."""

    text: str | None
    """Text, or None for a value that the manifest does not determine."""
    branch: bool | None = None
    """True: only in the incremental branch; False: only in that of the first run."""
    name: str | None = None
    """Name of a value that differs between invocations."""


def find_branches(node: DbtNode, manifest: DbtManifest) -> Branches:
    """Return the queries of both branches of a model, as far as the manifest determines them.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
    >>> raw = "select 1 as id {% if is_incremental() %}where day > 1{% endif %}"
    >>> node = DbtNode("model.p.m", "model", "m", raw_code=raw, compiled_code="select 1 as id ")
    >>> manifest = DbtManifest("manifest.json", "p", "spark", {node.unique_id: node}, {}, {})
    >>> find_branches(node, manifest)[:2]
    ('select 1 as id ', 'select 1 as id where day > 1')
    """
    if node.language != "sql":
        problem = f"{node.language} models are unsupported; only SQL models are read"
        return Branches(None, None, problem)
    if node.compiled_code is None:
        return Branches(None, None, "it has no compiled_code; run dbt compile")
    whole = Branches(node.compiled_code, node.compiled_code, varies=True)
    branched = "is_incremental" in node.raw_code or manifest.is_called(IS_INCREMENTAL, node)
    pieces = _pieces(node, manifest)
    ctes = _split_ctes(node, node.compiled_code)
    if pieces is None or ctes is None:
        return Branches(None, None, OTHER_LOGIC) if branched else whole
    matches = {
        branch: spans
        for branch in (True, False)
        if (spans := _match(_of_branch(pieces, branch), ctes.code)) is not None
    }
    divided = any(one.branch is not None for one in pieces)
    if not matches and not branched:
        return whole
    if not matches:
        problem = "compiled_code is no branch of its template; run dbt compile"
        return Branches(None, None, problem if divided else OTHER_LOGIC)
    if branched and not divided:
        return Branches(None, None, OTHER_LOGIC)
    if divided and len(matches) > 1:
        return Branches(None, None, "compiled_code may be either branch of its template")
    compiled, spans = next(iter(matches.items()))
    first, incremental = (
        None
        if (text := _spliced(pieces, ctes.code, spans, compiled, wanted)) is None
        else ctes.around(text)
        for wanted in (False, True)
    )
    unknown = first is None or incremental is None
    return Branches(
        first,
        incremental,
        "its block of is_incremental() has values that the manifest does not have"
        if unknown
        else "",
        varies=any(one.text is None for one in pieces) or _is_configured_by_run(node),
    )


def _is_configured_by_run(node: DbtNode) -> bool:
    """Return whether the template or the configuration has values of the invocation."""
    return bool(RUN_VALUE.search(node.raw_code)) or "{{" in str(node.unrendered_config)


class _Ctes(NamedTuple):
    """Compiled code, split into the queries of ephemeral models and the model's own code."""

    head: str
    code: str
    joined: bool
    """Whether the model's own code begins with WITH as well."""

    def around(self, code: str) -> str | None:
        """Return the code with the queries of ephemeral models before it."""
        if not self.joined:
            return f"{self.head}{code}"
        own = code.lstrip()
        return f"{self.head},{own[4:]}" if own[:4].lower() == "with" else None


def _split_ctes(node: DbtNode, code: str) -> _Ctes | None:
    """Return the compiled code without the queries that dbt put before it; None if not found."""
    if not node.extra_ctes:
        return _Ctes("", code, joined=False)
    queries = ",".join(_condensed(one.sql or "").text for one in node.extra_ctes)
    whole = _condensed(code)
    before = f"with{queries}"
    if not whole.text.startswith(before):
        return None
    end = whole.places[len(before) - 1] + 1
    rest = code[end:].lstrip()
    if rest.startswith(","):
        return _Ctes(code[:end], f"with{rest[1:]}", joined=True)
    return _Ctes(code[:end], code[end:], joined=False)


def _of_branch(pieces: Sequence[_Piece], branch: bool) -> list[_Piece]:
    return [one for one in pieces if one.branch in (None, branch)]


def render_hook(template: str, node: DbtNode, manifest: DbtManifest) -> str | None:
    """Return the statement of a hook, or None if the manifest does not determine it.

    Examples
    --------
    >>> from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
    >>> node = DbtNode("model.p.m", "model", "m", schema="dev", relation_name="dev.m")
    >>> manifest = DbtManifest("manifest.json", "p", "spark", {node.unique_id: node}, {}, {})
    >>> render_hook("optimize {{ this }}", node, manifest)
    'optimize dev.m'
    >>> render_hook("{{ mine() }}", node, manifest) is None
    True
    """
    try:
        tree = ENVIRONMENT.parse(template)
    except (TemplateSyntaxError, RecursionError):
        return None
    pieces = [*_walked(tree.body, node, manifest, None)]
    if any(one.text is None or one.branch is not None for one in pieces):
        return None
    return "".join(one.text or "" for one in pieces).strip()


def _pieces(node: DbtNode, manifest: DbtManifest) -> list[_Piece] | None:
    """Return the parts of a model's template; None if it does not parse."""
    try:
        return [*_walked(ENVIRONMENT.parse(node.raw_code).body, node, manifest, None)]
    except (TemplateSyntaxError, RecursionError):
        return None


def _walked(
    body: Iterable[nodes.Node], node: DbtNode, manifest: DbtManifest, branch: bool | None
) -> Iterator[_Piece]:
    """Yield the parts of a template in the branch in which they stand."""
    for one in body:
        match one:
            case nodes.Output():
                for part in one.nodes:
                    if isinstance(part, nodes.TemplateData):
                        yield _Piece(part.data, branch)
                    else:
                        text = _value(part, node, manifest)
                        yield _Piece(text, branch, _run_value(part) if text is None else None)
            case nodes.If() if branch is None and not one.elif_ and _asked(one.test) is not None:
                asked = _asked(one.test)
                yield from _walked(one.body, node, manifest, asked)
                yield from _walked(one.else_, node, manifest, not asked)
            case nodes.Assign() | nodes.AssignBlock() | nodes.Macro() | nodes.ExprStmt():
                pass
            case _:
                yield _Piece(None, branch)


def _asked(test: nodes.Node) -> bool | None:
    """Return whether a condition is is_incremental() (True) or its negation (False)."""
    if isinstance(test, nodes.Not):
        inner = _asked(test.node)
        return None if inner is None else not inner
    return True if _called(test) == "is_incremental" else None


def _called(part: nodes.Node) -> str | None:
    """Return the name of the function that an expression calls."""
    return (
        part.node.name
        if isinstance(part, nodes.Call) and isinstance(part.node, nodes.Name)
        else None
    )


def _run_value(part: nodes.Node) -> str | None:
    """Return a name for a value that differs between invocations, or None for any other value."""
    names = {one.name for one in part.find_all(nodes.Name)}
    if isinstance(part, nodes.Name):
        names.add(part.name)
    if not names & {*RUN_VALUES}:
        return None
    if _called(part) in ("var", "env_var"):
        first = _strings(part)[:1]
        if first and re.fullmatch(r"[A-Za-z_]\w*", first[0]):
            return first[0]
    return min(names & {*RUN_VALUES})


def _strings(part: nodes.Node) -> list[str]:
    """Return the arguments of a call that are texts."""
    given = part.args if isinstance(part, nodes.Call) else []
    return [
        one.value for one in given if isinstance(one, nodes.Const) and isinstance(one.value, str)
    ]


def _value(part: nodes.Node, node: DbtNode, manifest: DbtManifest) -> str | None:
    """Return the text of an expression that the manifest determines, or None."""
    match part:
        case nodes.Const(value=(str() | int()) as value) if not isinstance(value, bool):
            return str(value)
        case nodes.Name(name="this"):
            return node.relation_name
        case nodes.Getattr(node=nodes.Name(name="this"), attr=attribute):
            known = {"schema": node.schema, "database": node.database}
            known |= dict.fromkeys(("name", "identifier", "table"), node.identifier)
            return known.get(attribute)
        case nodes.Getattr(node=nodes.Name(name="target"), attr="schema"):
            return _target_schema(manifest)
        case nodes.Call() if _called(part) == "config":
            return ""
        case nodes.Call() if _called(part) == "ref":
            return _referred(part, node, manifest)
        case nodes.Call() if _called(part) == "source":
            pair = tuple(_strings(part))
            for source in manifest.sources.values():
                if (source.source_name, source.name) == pair:
                    return source.relation_name
    return None


def _referred(part: nodes.Call, node: DbtNode, manifest: DbtManifest) -> str | None:
    """Return the relation of ``ref(…)``, or the name of the query of an ephemeral model."""
    given = _strings(part)
    if part.kwargs or part.dyn_args or part.dyn_kwargs or len(given) != len(part.args) or not given:
        return None
    found = [
        other
        for key in node.depends_on.nodes
        if (other := manifest.nodes.get(key)) is not None
        and other.name == given[-1]
        and given[:-1] in ([], [other.package_name])
    ]
    if len(found) != 1:
        return None
    if found[0].materialized == "ephemeral":
        return f"__dbt__cte__{found[0].identifier}"
    return found[0].relation_name


def _target_schema(manifest: DbtManifest) -> str | None:
    """Return the schema of the target: that of all models without a schema of their own."""
    found = {
        node.schema
        for node in manifest.nodes.values()
        if node.resource_type in ("model", "seed", "snapshot")
        and not node.config.get("schema")
        and not node.config.get("target_schema")
    }
    return found.pop() if len(found) == 1 else None


class _Condensed(NamedTuple):
    """Text without blanks, with the position of each sign in the original."""

    text: str
    places: list[int]


def _condensed(text: str) -> _Condensed:
    places = [k for k, sign in enumerate(text) if not sign.isspace()]
    return _Condensed("".join(text[k] for k in places), places)


def _match(pieces: Sequence[_Piece], code: str) -> list[tuple[int, int]] | None:
    """Return the span of each piece in the code, without blanks, or None if they do not match.

    Texts are found from left to right, each as early as possible: if any assignment of the other
    values matches, this one does. A last text has to end where the code ends.
    """
    whole = _condensed(code).text
    spans: list[tuple[int, int]] = []
    at, free = 0, False
    last = max((k for k, one in enumerate(pieces) if one.text), default=-1)
    for k, one in enumerate(pieces):
        if one.text is None:
            spans.append((at, -1))
            free = True
            continue
        text = _condensed(one.text).text
        if not text:
            spans.append((at, at))
            continue
        start = whole.find(text, at) if free else (at if whole.startswith(text, at) else -1)
        if free and k == last and whole.endswith(text) and len(whole) - len(text) >= at:
            start = len(whole) - len(text)
        if start < 0:
            return None
        spans = [(first, start if end < 0 else end) for first, end in spans]
        at, free = start + len(text), False
        spans.append((start, at))
    if not free and at != len(whole):
        return None
    return [(first, len(whole) if end < 0 else end) for first, end in spans]


def _spliced(
    pieces: Sequence[_Piece],
    code: str,
    spans: Sequence[tuple[int, int]],
    branch: bool,
    wanted: bool,
) -> str | None:
    """Return the code of the wanted branch, from the code of a branch and the spans of its pieces.

    A value that differs between invocations and stands in quotes in a comparison is a parameter.
    """
    places = [*_condensed(code).places, len(code)]
    found: list[str] = []
    mine = iter(spans)
    at = 0
    for one in pieces:
        if one.branch in (None, branch):
            first, end = next(mine)
            start, at = at, places[end] if end > first else at
            if one.branch not in (None, wanted):
                continue
            kept = code[start:at]
            named = one.text is None and one.name is not None
            found.append(f"\0{one.name}\0{kept}\0" if named else kept)
        elif one.branch == wanted:
            if one.text is None:
                return None
            found.append(one.text)
    found.append(code[at:])
    return _with_parameters("".join(found))


VARYING = re.compile(r"'\0(\w+)\0[^\0']*\0'|\0(\w+)\0([^\0]*)\0")


def _with_parameters(text: str) -> str:
    """Return the text with a parameter for each quoted value that is compared."""

    def written(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[3]
        if COMPARED.search(text[: found.start()]):
            return f":{found[1]}"
        return f"'{found[0].split(chr(0))[2]}'"

    return VARYING.sub(written, text)
