"""Whether a condition on parameters, in the words of a prediction, is true of their values."""

COMPARED = {
    "equals": lambda a, b: a == b,
    "is not": lambda a, b: a != b,
    "is below": lambda a, b: None not in (a, b) and a < b,
    "is above": lambda a, b: None not in (a, b) and a > b,
    "is at most": lambda a, b: None not in (a, b) and a <= b,
    "is at least": lambda a, b: None not in (a, b) and a >= b,
}


def condition_holds(words, values):
    """Return whether a condition in words is true; NULL equals NULL, and is in no order."""
    if " or " in words:
        return any(condition_holds(part, values) for part in words.split(" or "))
    if words.startswith("both have the same :"):
        return len({each[words[-1]] for each in values.values()}) == 1

    def value(term):
        owner, _, parameter = term.partition("'s :")
        return values[owner][parameter] if parameter else int(term)

    if words.endswith((" is NULL", " is not NULL")):
        owner, _, word = words.partition(" is ")
        return (value(owner) is None) == (word == "NULL")
    word = next(word for word in COMPARED if f" {word} " in words)
    left, _, right = words.partition(f" {word} ")
    return COMPARED[word](value(left), value(right))
