"""Random litmus tests of the store: two or three transactions on two keys, in any schedule."""

from hypothesis import strategies as st

from isolitmus.specs.files.litmus_file import read_litmus

TEXT = """
title    = "Drawn"
format   = "store"
schedule = "{}"
[table]
columns = "key STRING, value INT"
init    = ["PUT x 0"]
[transactions]
"""
KEYS = st.sampled_from("xy")
STATEMENTS = st.one_of(
    st.builds("GET {}".format, KEYS),
    st.builds("PUT {} {}".format, KEYS, st.integers(1, 3)),
    st.builds("PUT {} {} + 1".format, KEYS, KEYS),
    st.builds("DEL {}".format, KEYS),
)


@st.composite
def store_tests(draw):
    each = st.lists(STATEMENTS, min_size=1, max_size=3)
    bodies = dict(zip("abc", draw(st.lists(each, min_size=2, max_size=3)), strict=False))
    steps = {
        name: [
            f"{name}.start",
            *(f"{name}[{k}]" for k in range(1, len(body) + 1)),
            f"{name}.commit",
        ]
        for name, body in bodies.items()
    }
    for name, body in bodies.items():
        if len(body) == 1:
            steps[name].pop(1)
    order = draw(st.permutations([name for name, queue in steps.items() for _ in queue]))
    schedule = " ".join(steps[name].pop(0) for name in order)
    lines = [f"{n} = {b if len(b) > 1 else repr(b[0])}" for n, b in bodies.items()]
    return read_litmus(TEXT.format(schedule) + "\n".join(lines), "drawn")
