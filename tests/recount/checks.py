"""The recount of a release: the checks that apply to most kinds of methods."""

import csv
import io
import math
from collections import defaultdict

import pyarrow as pa

from kinds import check_centroids, check_groups, check_levels, check_noise, check_regions
from models import Sample, breaches
from pages import pages
from values import comparable


def recount(release):
    """Runs all checks of a release; its problems are in `release.problems`."""
    case = release.case
    check_columns(release)
    if case.kind == "noise":
        check_noise(release)
        check_leaks(release, case.tokens)
        return
    if None in release.rows or len({*release.rows}) < len(release.rows) or not release.rows:
        release.problems.append("a released row is not in the input or occurs twice, or no row is released")
        return
    if case.kind == "groups":
        check_groups(release)
    else:
        check_classes(release)
    check_models(release)
    check_order(release)
    check_leaks(release, [case.tokens[row] for row in release.suppressed])


def check_columns(release):
    """Checks that the release has the columns that the policy keeps, and no others."""
    roles = ["quasi"] if release.case.kind in ("groups", "noise") else ["quasi", "sensitive", "insensitive"]
    names = [name for column in release.case.of_role(*roles) for name in release.names_of(column)]
    names += ["group_id"] * (release.case.kind == "groups")
    release.expect(sorted(release.cells) == sorted(names), "the release has other columns than the policy allows")


def check_classes(release):
    """Checks the numbers of a release with classes, then each column."""
    case, record = release.case, release.record
    release.classes = release.group_by(release.quasi)
    left_out = {case.individuals[row] for row in release.suppressed} - {None}
    individuals = len({*case.individuals} - {None})
    release.expect(len(left_out) <= math.floor(case.limit * individuals), "more is suppressed than the limit allows")
    recorded = [release.private["suppressed_rows"], record["classes"]]
    counted = [len(release.suppressed), len(release.classes)]
    if case.has_individuals:
        recorded += [release.private["suppressed_individuals"], record["individuals"]]
        counted += [len(left_out), Sample(case, release.rows).size]
    release.expect(recorded == counted, "the records have wrong counts")
    reached = {model["reached"] for model in record["models"] if model["model"] == "k_anonymity" and "quasi" not in model}
    least = min(Sample(case, rows).size for rows in release.classes.values())
    release.expect(reached <= {least}, "the record has a wrong k")
    for column in release.quasi:
        if column.rule == "merge":
            read_tree(release, column)
    for column in case.of_role("sensitive", "insensitive"):
        check_unchanged(release, column)
    if case.kind == "levels":
        check_levels(release)
    for at, column in enumerate(release.quasi):
        if case.kind == "regions":
            check_regions(release, column)
        elif case.kind == "centroids":
            check_centroids(release, column, record["recoding"]["centroids"][at]["centroid"])


def read_tree(release, column):
    """Reads the tree of a merged column from the private record, and checks it against the individuals of its values."""
    case, individuals = release.case, defaultdict(set)
    for value, individual in zip(column.values, case.individuals):
        if value is not None:
            individuals[value].add(individual)
    # The values that few individuals hold have no line of their own.
    joined = release.private.get("merged_labels", {}).get(column.name, "other")
    column.tree = {value: [joined] * column.top for value in individuals}
    text = io.StringIO(release.private["merged"][column.name], newline="")
    column.tree |= {value: labels for value, *labels in csv.reader(text, delimiter=";") if value != joined}
    order = column.line["hierarchy"]["merge"].get("order") or sorted(individuals)
    for at, value in enumerate(order):
        labels = column.tree[value]
        if {*labels} != {joined}:
            runs = [(first + "..", ".." + last) for first in order[: at + 1] for last in order[at:]]
            fits = labels[0] == value and all(
                label in (joined, value) or any(label.startswith(first) and label.endswith(last) for first, last in runs)
                for label in labels)
            release.expect(fits, f"{column.name}: a label of the tree does not fit its value")
    holders = {value: individuals[value] - {None} for value in order}
    # A value with the text of the label has no line: it is one of the others.
    listed = [len(holders[value]) for value in order if {*column.tree[value]} != {joined}]
    least = case.k or 2
    release.expect(min(listed, default=least) >= least, f"{column.name}: the tree lists a value of too few individuals")
    if any(require["model"] != "k_anonymity" or "quasi" in require for require in case.requires):
        return
    others = [held for value, held in holders.items() if {*column.tree[value]} == {joined}]
    rare = [held for held in others if len(held) < least]
    frequent = [len(held) for held in others if len(held) >= least]
    # If too few individuals hold all rare values, the rarest other value joins them, unless it is the only one.
    may_join = len(set().union(*rare)) < least and rare and len(listed) + len(frequent) > 1
    fits = len(frequent) == 1 and frequent[0] <= min(listed) if may_join else not frequent
    release.expect(fits, f"{column.name}: the tree lists other values than the rule says")


def check_unchanged(release, column):
    """Checks that a sensitive or insensitive column has the type and the values of the input."""
    plain = pa.string() if column.kind == "text" else column.type
    release.expect(release.types[column.name] == plain, f"{column.name} has another type than in the input")
    same = (comparable(cell) == comparable(value) for cell, value in release.cells_and_values(column))
    release.expect_all(same, f"values of {column.name} that differ from the input")


def check_models(release):
    """Checks that every class satisfies every model."""
    for require in release.case.requires:
        release.problems += breaches(release.case, release.restricted(require), require, release.population)


def check_order(release):
    """Checks that neither all rows nor those of a large class stand in the order of the input."""
    place = {row: at for at, row in enumerate(release.rows)}
    for rows in [release.rows, *release.classes.values()]:
        in_order = len(rows) >= 14 and sorted(rows, key=place.get) == sorted(rows)
        release.expect(not in_order, "rows stand in the order of the input")


def check_leaks(release, hidden):
    """Checks that no token of a left-out column or a hidden row is in the files, their pages or the record."""
    left_out = release.case.of_role("identifier", "individual", "text", "others")
    secret = [cell for column in left_out if column.kind == "text" for cell in column.present()] + hidden
    files = [path for path in release.folder.rglob("*") if path.is_file()]
    contents = [path.read_bytes() for path in files]
    contents += [page for path in files if path.suffix == ".parquet" for page in pages(path)]
    everything = b"\0".join(contents)
    found = sum(token.encode() in everything for token in secret)
    release.expect(not found, f"tokens of suppressed rows or left-out columns in the release: {found}")
    is_found = all(token.encode() in everything for token in release.cells.get("row", []))
    release.expect(is_found, "the search misses a released token")
