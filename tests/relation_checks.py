"""What the reading of a drawn job has lost of the relations that were placed in it."""

from isolitmus.jobs.sql.relation_account import modelled_scans
from isolitmus.model.sql.statement import Insert, Replace


def lost(drawn, work, job="x0"):
    """Return what the reading of a drawn job has lost of what was placed."""
    understood = [one for one in work.statements if one.job == job]
    if not understood:
        (*_, unread) = [one for one in work.unread if one.job == job]
        return set() if unread.tables is None else drawn.tables - unread.tables
    statement = understood[-1]
    scans = modelled_scans(statement.statement)
    missing = drawn.tables - {*scans, *statement.reads}
    own, modelled = drawn.scans[drawn.target], scans[drawn.target]
    whole = isinstance(statement.statement, Replace) or (
        isinstance(statement.statement, Insert)
        and statement.statement.overwrite
        and statement.statement.where is None
    )
    if own != modelled and not (whole and own and (modelled or drawn.target in statement.reads)):
        missing.add(drawn.target)
    return missing
