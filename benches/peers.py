#!/usr/bin/env python3
"""What do anonypy's Mondrian and ANJANA keep of UCI Adult, measured as benches/methods.py measures kanon?

    pip install anonypy anjana        (made with anonypy 0.2.1 and anjana 1.2.3)
    python3 benches/peers.py          KANON_SHARED: ../shared

The table and the requirements are those of benches/methods.py: ten quasi-identifiers, k = 5 and 10, 2-diversity, at most 5 %
suppressed; ANJANA gets the same ranges of ages and nothing else but suppression of a column. `granularity_mean` is computed
from the classes: of a set of values the share of the column's values beside one, of numbers that of the values from the least
to the greatest; a suppressed row loses everything.
"""
import bisect
import os
import pathlib
import time

import pandas

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("KANON_SHARED", ROOT.parent / "shared"))
NUMBERS = ["age", "education-num"]
WORDS = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"]
QUASI, SENSITIVE = NUMBERS + WORDS, "salary-class"


def figures(rows, classes, domains, shown):
    """Returns granularity_mean, discernibility and the mean class size; `shown(class, column)` counts leaves."""
    kept = sum(len(one) for one in classes)
    loss = 0.0
    for one in classes:
        of_row = [(shown(one, column) - 1) / max(1, len(domains[column]) - 1) for column in QUASI]
        loss += len(one) * sum(of_row) / len(QUASI)
    suppressed = rows - kept
    discernibility = sum(len(one) ** 2 for one in classes) + suppressed * rows
    return (loss + suppressed) / rows, discernibility, kept / max(1, len(classes)), suppressed


def line(name, k, found, seconds):
    loss, discernibility, size, suppressed = found
    print(f"| Adult | {k} | {name} | {loss:.4f} | {discernibility:,} | {size:.1f} | {suppressed:,} | {seconds:.1f} |", flush=True)


def by_anonypy(table, domains, k):
    from anonypy import mondrian

    frame = table.copy()
    for name in WORDS + [SENSITIVE]:
        frame[name] = frame[name].astype("category")
    begin = time.perf_counter()
    parts = mondrian.Mondrian(frame, QUASI, SENSITIVE).partition(k, 2, 0.0)
    seconds = time.perf_counter() - begin

    def shown(part, column):
        values = table[column].loc[part]
        if column in WORDS:
            return values.nunique()
        domain = domains[column]
        return bisect.bisect_left(domain, values.max()) - bisect.bisect_left(domain, values.min()) + 1

    line("anonypy, Mondrian", k, figures(len(table), parts, domains, shown), seconds)


def by_anjana(table, domains, k):
    from anjana.anonymity import l_diversity

    def levels(column):
        values = table[column]
        if column != "age":
            return {0: values.values, 1: ["*"] * len(values)}
        ranges = {at: [f"{v // w * w}-{v // w * w + w - 1}" for v in values] for at, w in ((1, 5), (2, 10), (3, 20))}
        return {0: values.values, **ranges, 4: ["*"] * len(values)}

    begin = time.perf_counter()
    out = l_diversity(table.copy(), [], QUASI, SENSITIVE, k, 2, 5, {column: levels(column) for column in QUASI})
    seconds = time.perf_counter() - begin
    classes = [list(rows) for rows in out.groupby(QUASI, observed=True).groups.values()]

    def shown(rows, column):
        label = str(out[column].loc[rows[0]])
        if label == "*":
            return len(domains[column])
        if column == "age" and "-" in label:
            low, high = map(int, label.split("-"))
            return sum(low <= value <= high for value in domains[column])
        return 1

    line("ANJANA", k, figures(len(table), classes, domains, shown), seconds)


def main():
    path = SHARED / "data" / "adult_full" / "adult.csv"
    table = pandas.read_csv(path, skipinitialspace=True)
    table.columns = [name.strip() for name in table.columns]
    domains = {column: sorted(table[column].unique()) for column in QUASI}
    print("| table | k | program | `granularity_mean` | discernibility | average class size | suppressed rows | s |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for k in (5, 10):
        for program in (by_anonypy, by_anjana):
            program(table, domains, k)


if __name__ == "__main__":
    main()
