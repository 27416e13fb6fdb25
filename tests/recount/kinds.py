"""The checks of each kind of method: levels, regions, centroids, groups and noise."""

import math
import re
from collections import Counter, defaultdict
from fractions import Fraction

import pyarrow as pa

from labels import covers, is_inside, is_label, read
from models import breaches
from values import as_printed, comparable, sort_key


def check_levels(release):
    """Checks that each column shows one level, and that the classes and the suppressed rows follow from the levels."""
    case, quasi, levels = release.case, release.quasi, []
    for column, recorded in zip(quasi, release.record["recoding"]["levels"]):
        level = recorded["level"]
        is_allowed = column.line.get("min_level", 0) <= level <= column.line.get("max_level", column.top)
        is_recorded = recorded["column"] == column.name and recorded["of"] == column.top
        release.expect(is_allowed and is_recorded, f"{column.name}: the policy does not allow the level")
        levels.append(level)
        check_labels(release, column, level)

    def code_of(values):
        return tuple(column.code(value, level) for column, value, level in zip(quasi, values, levels))

    code_of_row = [code_of(values) for values in zip(*(column.values for column in quasi))]
    by_code = {code_of_row[row]: release.shown(quasi, at) for at, row in enumerate(release.rows)}
    is_one_to_one = len(by_code) == len(release.classes) == len({*by_code.values()})
    release.expect(is_one_to_one, "two classes have the same labels, or one class has different labels")
    failing, population = defaultdict(list), defaultdict(set)
    for row in release.suppressed:
        failing[code_of_row[row]].append(row)
    release.expect(not failing.keys() & by_code.keys(), "a class is suppressed in part")
    for values, individual in case.population:
        if individual is not None:
            code = code_of(values)
            population[by_code.get(code, code)].add(individual)
    release.population = population
    if not any("quasi" in require or require["model"] == "average_risk" for require in case.requires):
        for code, rows in failing.items():
            alone = {code: population[code]} if code in population else {}
            # Suppression cannot cure a share below `lo`, so the class must fail for another reason.
            fails = any(breaches(case, {code: rows}, require | {"lo": 0}, alone) for require in case.requires)
            release.expect(fails, "a suppressed class satisfies every model")


def check_labels(release, column, level):
    """Checks that every row shows the label of its value at a level."""
    right = (is_label(column, cell, value, level) for cell, value in release.cells_and_values(column))
    release.expect_all(right, f"labels of {column.name} that are not those of their values at level {level}")
    written = release.types[column.name]
    if not level and column.kind != "text" and not release.case.is_csv and written != pa.string():
        release.expect(written == column.type, f"{column.name} has another type than in the input")


def check_regions(release, column):
    """Checks that every region covers its value, and that intervals end at values of the class or stay open."""
    case, names = release.case, release.interval_columns(column)
    values = [column.values[row] for row in release.rows]
    if names:
        ends = zip(values, *(release.cells[name] for name in names))
        right = (is_in_columns(column, *each) for each in ends)
    else:
        right = (covers(column, cell, value) for cell, value in release.cells_and_values(column))
    release.expect_all(right, f"regions of {column.name} that do not cover their value")
    if "recode" in column.line:
        pairs = {(comparable(value), release.shown([column], at)) for at, value in enumerate(values)}
        is_global = len(pairs) == len({value for value, _ in pairs})
        release.expect(is_global, f"{column.name}: a value has two labels in a global column")
    elif not names and column.has_intervals and column.clip == (None, None) and case.output["ends"] != "cuts":
        check_ends(release, column)


def is_in_columns(column, value, low, high, missing):
    """Returns whether an interval in three columns covers a value."""
    if value is None:
        return missing is not False
    ends = (None if end is None else sort_key(column.kind, as_printed(end, column.type)) for end in (low, high))
    return missing is not True and is_inside(column, value, *ends)


def check_ends(release, column):
    """Checks that intervals end at values of their classes, and with open ends, not at the least or greatest of all."""
    def numbers(rows):
        return [sort_key(column.kind, value) for value in column.present(rows)]

    known = [number for number in numbers(release.rows) if number != sort_key("number", "NaN")]  # NaN is no open end.
    is_open, right = release.case.output["ends"] == "values", True
    for cell, rows in release.cells_by_class(column):
        text = (cell or "").removesuffix(" or missing")
        if match := re.fullmatch(r"\[(.+),(.+)\]", text):
            low, high = read(column, match[1]), read(column, match[2])
            right = right and (low, high) == (min(numbers(rows)), max(numbers(rows)))
            right = right and not (is_open and (low == min(known) or high == max(known)))
        elif match := re.fullmatch(r"(<=|>=)(.+)", text):
            ends = (min(known), max(numbers(rows))) if match[1] == "<=" else (min(numbers(rows)), max(known))
            right = right and is_open and read(column, match[2]) in ends
    release.expect(right, f"{column.name}: an interval does not end as `ends` demands")


def check_centroids(release, column, recorded):
    """Checks that every class shows the mean, lower median or most frequent value of its rows."""
    wanted = release.case.settings.get("centroid", "mean") if column.has_intervals else "mode"
    release.expect(recorded == wanted, f"{column.name}: the policy demands another centroid")
    right = (is_centroid(column, recorded, cell, [column.values[row] for row in rows])
             for cell, rows in release.cells_by_class(column))
    release.expect_all(right, f"classes that show another {recorded} of {column.name} than that of their rows")


def is_centroid(column, centroid, cell, values):
    """Returns whether a cell is the mean, lower median or most frequent of some values."""
    present = [value for value in values if value is not None]
    if centroid == "mode":
        return values.count(cell) == max(map(values.count, values))
    if 2 * len(present) < len(values) or cell is None:
        return 2 * len(present) < len(values) and cell is None
    if column.kind == "number":
        numbers = sorted(column.clipped(value) for value in present)
        cell = sort_key("number", as_printed(cell, column.type) if centroid == "median" else cell)
    elif column.kind == "day":
        numbers, cell = sorted(day.toordinal() for day in present), cell.toordinal()
    else:  # The cell is in the unit of the type.
        ticks = {"ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
        numbers = sorted(sort_key("moment", moment) * ticks // 10**6 for moment in present)
    if centroid == "median":
        return cell == numbers[(len(numbers) - 1) // 2]
    if column.kind != "number":
        return cell == sum(numbers) // len(numbers)
    if any(rank for rank, _ in numbers):
        return cell[0] != 0
    numbers = [Fraction(number) for _, number in numbers]
    return abs(Fraction(cell[1]) - sum(numbers) / len(numbers)) <= Fraction(1, 10**9) * max(map(abs, numbers))


def check_groups(release):
    """Checks that rows are exact, and that each group has the sensitive values of its rows, none in more than 1 of l."""
    sensitive, second = release.case.of_role("sensitive")[0], release.second
    release.expect(not release.suppressed, "rows are missing from the groups")
    for column in release.quasi:
        check_labels(release, column, 0)
    for group, row in zip(release.cells["group_id"], release.rows):
        release.classes.setdefault(group, []).append(row)
    written = defaultdict(Counter)
    for group, value, count in zip(second["group_id"], second[sensitive.name], second["count"]):
        written[group][comparable(value)] += count
    found = {group: Counter(comparable(sensitive.values[row]) for row in rows) for group, rows in release.classes.items()}
    release.expect(written == found, "the counts of a group are not those of its rows")
    for require in release.case.requires:
        l = 1 / Fraction(require["alpha"]) if "alpha" in require else 1 if "c" in require else require.get("l", 1)
        fits = all(max(counts.values()) * math.ceil(l) <= counts.total() for counts in found.values())
        release.expect(fits, "more than 1 in l rows of a group have the same value")


def check_noise(release):
    """Checks that clusters have k rows and means within the bounds, in a single column also near its sorted values."""
    case, recorded = release.case, release.record["recoding"]["centroids"]
    clusters = Counter(zip(*(release.cells[column.name] for column in release.quasi)))
    is_complete = clusters.total() == case.rows and min(clusters.values()) >= case.k
    release.expect(is_complete, "rows are missing, or a cluster has fewer than k rows")
    for column, centroid in zip(release.quasi, recorded):
        low, high = column.clip
        is_within = centroid["centroid"] == "noisy_mean" and all(low <= cell <= high for cell in release.cells[column.name])
        release.expect(is_within, f"{column.name}: a mean is beyond the bounds")
    if len(release.quasi) == 1 and len(clusters) == case.rows // case.k:
        column, (low, high) = release.quasi[0], map(float, release.quasi[0].clip)
        values = [None if value is None else column.clipped(value) for value in column.values]
        # Missing values and NaN count as the middle of the bounds.
        values = sorted((low + high) / 2 if value is None or value[0] == 2 else float(value[1]) for value in values)
        # Noise moves a mean by 60 scales with a chance of e^-60, and each cluster by one of its k rows.
        near, at = 60 * float(recorded[0]["noise"]["scale"]) + (high - low) / case.k, 0
        for (mean,), size in sorted(clusters.items()):
            part = values[max(at - case.k, 0) : at + size + case.k]
            at += size
            release.expect(part[0] - near <= mean <= part[-1] + near, f"{column.name}: a mean is far from its cluster")
