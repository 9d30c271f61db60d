"""Expressions of every type, as SQL, over one table; for Hypothesis."""

from hypothesis import strategies as st

from isolitmus.model.sql.schema import Column, Schema

TYPES = {
    "i": "INT",
    "b": "BIGINT",
    "s": "STRING",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "m": "DECIMAL(10,2)",
    "x": "DOUBLE",
    "f": "BOOLEAN",
}
TABLE = Schema("t", tuple(Column(name, type_) for name, type_ in TYPES.items()))
LITERALS = {
    "INT": ["0", "1", "-1", "3", "2147483647", "CAST('7' AS INT)"],
    "BIGINT": ["2147483648", "CAST(5 AS BIGINT)"],
    "STRING": ["'a'", "'abc'", "'3'", "' 12 '", "''", "'2026-01-02'", "'1.5'", "'true'", "'A%'"],
    "DATE": ["DATE '2026-01-02'", "DATE '2024-02-29'", "CAST('2026-01-03' AS DATE)"],
    "TIMESTAMP": ["TIMESTAMP '2026-01-02 00:00:00'", "TIMESTAMP '2026-01-02 10:30:00.5'"],
    "DECIMAL(10,2)": ["CAST(1.50 AS DECIMAL(10,2))", "CAST('2.345' AS DECIMAL(10,2))"],
    "DOUBLE": ["0.5D", "1e0", "2D", "0D"],
    "BOOLEAN": ["TRUE", "FALSE"],
}
NUMBERS = ("INT", "BIGINT", "DECIMAL(10,2)", "DOUBLE")
TEXTS = {
    "INT": "'3'",
    "BIGINT": "'3'",
    "DOUBLE": "'1.5'",
    "DATE": "'2026-01-02'",
    "TIMESTAMP": "'2026-01-02'",
    "BOOLEAN": "'true'",
}
"""What a text beside a value of a type says."""
ROWS = {
    "INT": ["0", "1", "3", "2147483647", "-2"],
    "BIGINT": ["0", "3", "2147483648"],
    "STRING": ["'a'", "'3'", "'abc'", "'2026-01-02'", "''", "'x%'"],
    "DATE": ["DATE '2026-01-02'", "DATE '2024-02-29'"],
    "TIMESTAMP": ["TIMESTAMP '2026-01-02 00:00:00'", "TIMESTAMP '2026-01-02 23:59:59.123'"],
    "DECIMAL(10,2)": ["1.50", "0.00", "-3.25"],
    "DOUBLE": ["0.5D", "0D", "-2.25D"],
    "BOOLEAN": ["TRUE", "FALSE"],
}


@st.composite
def rows(draw):
    """VALUES of the table, some NULL."""
    count = draw(st.integers(1, 3))
    drawn = [
        ", ".join(draw(st.sampled_from([*ROWS[type_], "NULL"])) for type_ in TYPES.values())
        for _ in range(count)
    ]
    return ", ".join(f"({row})" for row in drawn)


@st.composite
def expressions(draw, type_, depth=2):
    """An expression of a type; one that Spark would compute as it stands."""
    columns = [name for name, of in TYPES.items() if of == type_]
    leaves = st.sampled_from([*LITERALS[type_], *columns, *columns, *columns])
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(leaves)

    def of(wanted):
        return draw(expressions(wanted, depth - 1))

    when, then, other = of("BOOLEAN"), of(type_), of(type_)
    every = [
        f"CASE WHEN {when} THEN {then} ELSE {other} END",
        f"IF({when}, {then}, {other})",
        f"COALESCE({then}, {other})",
        f"NULLIF({then}, {other})",
    ]
    if type_ != "BOOLEAN":
        every += [f"GREATEST({then}, {other})", f"LEAST({then}, {other})"]
    return draw(st.sampled_from(every + draw(_typed(type_, depth - 1))))


@st.composite
def _typed(draw, type_, depth):
    def of(wanted):
        return draw(expressions(wanted, depth))

    text = of("STRING")
    quotient = (
        f"({of('DECIMAL(10,2)')} / {of(draw(st.sampled_from(['DECIMAL(10,2)', 'INT', 'BIGINT'])))})"
    )
    match type_:
        case "INT":
            a, b, day = of("INT"), of("INT"), of("DATE")
            return [
                f"({a} + {b})", f"({a} * {b})", f"(-{a})", f"abs({a})", f"length({text})",
                f"year({day})", f"month({day})", f"day({day})", f"datediff({day}, {of('DATE')})",
                f"CAST({of('DECIMAL(10,2)')} AS INT)", f"CAST({of('DOUBLE')} AS INT)",
                f"CAST({text} AS INT)", f"CAST({of('BOOLEAN')} AS INT)", f"CAST({of('BIGINT')} AS INT)",
            ]  # fmt: skip
        case "BIGINT":
            return [f"({of('INT')} - {of('BIGINT')})", f"CAST({of('INT')} AS BIGINT)"]
        case "STRING":
            start, length = draw(st.integers(-4, 4)), draw(st.integers(-1, 4))
            return [
                f"upper({text})", f"lower({text})", f"trim({text})", f"concat({text}, {of('STRING')})",
                f"substring({text}, {start}, {length})", f"substr({text}, {start})",
                f"({text} || {of('STRING')})", f"CAST({of('INT')} AS STRING)",
                f"CAST({of('DATE')} AS STRING)", f"CAST({of('TIMESTAMP')} AS STRING)",
                f"CAST({of('BOOLEAN')} AS STRING)", f"CAST({of('DECIMAL(10,2)')} AS STRING)",
                f"CAST({of('DOUBLE')} AS STRING)", f"CAST({quotient} AS STRING)", f"md5({text})",
                f"sha2({text}, 256)", f"sha1({text})", f"replace({text}, 'a', {of('STRING')})",
            ]  # fmt: skip
        case "DATE":
            days = draw(st.integers(-40, 40))
            return [
                f"date_add({of('DATE')}, {days})", f"({of('DATE')} - 7)", f"({of('DATE')} + {days})",
                f"date_sub({of('DATE')}, {days})", f"({of('DATE')} + INTERVAL 1 DAY)", f"(INTERVAL {abs(days)} DAYS + {of('DATE')})",
                f"CAST({of('TIMESTAMP')} AS DATE)", f"CAST({text} AS DATE)", f"to_date({text})",
            ]  # fmt: skip
        case "TIMESTAMP":
            moment, many = of("TIMESTAMP"), draw(st.integers(0, 90))
            unit = draw(st.sampled_from(["DAY", "HOURS", "MINUTE", "SECONDS"]))
            return [
                f"CAST({of('DATE')} AS TIMESTAMP)", f"({moment} - INTERVAL {many} {unit})",
                f"({moment} + INTERVAL '{many}' {unit})", f"(INTERVAL {many} {unit} + {moment})",
                f"({of('DATE')} - INTERVAL {many} HOURS)",
            ]  # fmt: skip
        case "DECIMAL(10,2)":
            a, b = of("DECIMAL(10,2)"), of("DECIMAL(10,2)")
            return [
                f"CAST(({a} + {b}) AS DECIMAL(10,2))", f"CAST(({a} * 1.5) AS DECIMAL(10,2))",
                f"CAST(({a} - {of('INT')}) AS DECIMAL(10,2))", f"CAST({of('INT')} AS DECIMAL(10,2))",
                f"CAST({text} AS DECIMAL(10,2))", f"abs({a})", f"(-{a})", f"CAST({quotient} AS DECIMAL(10,2))",
            ]  # fmt: skip
        case "DOUBLE":
            a, b = of("DOUBLE"), of("DOUBLE")
            return [
                f"({a} + {b})", f"({a} - {of('INT')})", f"({of('INT')} / {of('INT')})", f"({a} / {b})",
                f"CAST({of('DECIMAL(10,2)')} AS DOUBLE)", f"CAST({text} AS DOUBLE)", f"(-{a})", f"CAST({quotient} AS DOUBLE)",
            ]  # fmt: skip
    return draw(conditions(depth))


@st.composite
def conditions(draw, depth):
    """Comparisons, of values of one type or of two that Spark makes one of."""
    type_ = draw(st.sampled_from(sorted(LITERALS)))
    a, b, c = (draw(expressions(type_, depth)) for _ in range(3))
    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    found = [
        f"({a} {op} {b})",
        f"({a} BETWEEN {b} AND {c})",
        f"({a} NOT BETWEEN {b} AND {c})",
        f"NOT ({a} {op} {b})",
        f"({a} {op} {b} OR {b} {op} {c})",
        f"({a} {op} {b} AND {b} {op} {c})",
    ]
    if type_ in NUMBERS:
        number = draw(expressions(draw(st.sampled_from(NUMBERS)), depth))
        found += [f"({a} {op} {number})", f"({a} {op} 1.5)"]
    if type_ in TEXTS:
        found += [f"({a} {op} {TEXTS[type_]})", f"(s {op} {a})", f"({a} IN ({TEXTS[type_]}))"]
    if type_ == "DATE":
        found.append(f"({a} {op} {draw(expressions('TIMESTAMP', depth))})")
    if type_ == "STRING":
        pattern = draw(st.sampled_from(["a%", "%c", "a_c", "a%c", "%", "abc", "_%"]))
        found += [f"({a} LIKE '{pattern}')", f"({a} NOT LIKE '{pattern}')"]
        regular = draw(st.sampled_from(["^a", "b.?c$", "[0-9]+", "^(a|3)*$", "[^a]"]))
        found += [
            f"({a} RLIKE '{regular}')",
            f"startswith({a}, 'a')",
            f"endswith({a}, {b})",
            f"contains({a}, {b})",
        ]
    if type_ != "BOOLEAN":
        column = next(name for name, of in TYPES.items() if of == type_)
        literals = ", ".join(draw(st.lists(st.sampled_from(LITERALS[type_][:2]), min_size=1)))
        found += [f"({column} IN ({literals}))", f"({column} IS NULL)", f"({column} IS NOT NULL)"]
    return found
