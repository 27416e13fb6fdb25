"""Tests of the recount itself: it must report stricter models and notice changed values."""

import datetime

from checks import check_unchanged
from kinds import check_labels, check_regions
from models import STRICTER, breaches


def reports_stricter(release, require):
    """Returns whether the recount reports a stricter parameter of a model."""
    name, stricter = STRICTER[require["model"]]
    changed = require | {name: stricter(require[name])}
    return bool(breaches(release.case, release.restricted(require), changed, release.population))


def notices_changes(release):
    """Changes one cell of some columns in memory; returns for each whether a check notices it."""
    before, noticed = release.problems, []
    levels = {recorded["column"]: recorded["level"] for recorded in release.record["recoding"].get("levels", [])}
    for column in release.case.of_role("quasi", "sensitive", "insensitive"):
        cells = release.cells.get(column.name, []) if column.name != "row" else []
        at = next((at for at, cell in enumerate(cells) if can_change(cell)), None)
        if at is None or column.role == "quasi" and release.case.kind not in ("levels", "regions"):
            continue
        cell, release.problems = cells[at], []
        cells[at] = changed_cell(cell)
        if column.role != "quasi":
            check_unchanged(release, column)
        elif column.name in levels:
            check_labels(release, column, levels[column.name])
        else:
            check_regions(release, column)
        cells[at] = cell
        noticed.append(bool(release.problems))
    release.problems = before
    return noticed


def can_change(cell):
    """Returns whether another cell in this place would be wrong; NaN, 0 and 1 are left alone, too."""
    return cell == cell and cell not in (None, "*", True, False)


def changed_cell(cell):
    """Returns another cell of the same type."""
    if isinstance(cell, str):
        return "no value has this"
    if isinstance(cell, datetime.date):
        return cell + datetime.timedelta(1)
    return 78 if cell == 77 else 77
