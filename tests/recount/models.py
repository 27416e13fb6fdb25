"""The privacy models by definition, as the views `by_definition` of sql/model/ state them."""

import math
from collections import Counter
from fractions import Fraction

from values import sort_key

# Models of the sizes of classes, of one sensitive column, and of a population. Groups accept the first four of OF_VALUES.
OF_SIZES = ["k_anonymity", "personalized_k_anonymity", "average_risk"]
OF_VALUES = ["l_diversity", "entropy_l_diversity", "recursive_l_diversity", "alpha_k_anonymity", "t_closeness",
             "t_closeness_ordered", "t_closeness_hierarchical", "basic_beta_likeness", "enhanced_beta_likeness",
             "delta_disclosure"]
OF_GROUPS = OF_VALUES[:4]
OF_POPULATION = ["k_map", "delta_presence"]
# A parameter of each model, and a change that makes the model stricter.
STRICTER = {
    "k_anonymity": ("k", lambda k: k + 2), "k_map": ("k", lambda k: 3 * k), "l_diversity": ("l", lambda l: l + 1),
    "entropy_l_diversity": ("l", lambda l: l + 1),
    **{model: (name, lambda bound: bound / 3) for model, name in [
        ("recursive_l_diversity", "c"), ("alpha_k_anonymity", "alpha"), ("t_closeness", "t"), ("t_closeness_ordered", "t"),
        ("t_closeness_hierarchical", "t"), ("basic_beta_likeness", "beta"), ("enhanced_beta_likeness", "beta"),
        ("delta_disclosure", "delta"), ("delta_presence", "hi"), ("average_risk", "r")]},
}


class Sample:
    """The individuals of some rows: their number, and the number of them with each label of a sensitive column."""

    def __init__(self, table, rows, labels=None):
        rows = [row for row in rows if table.individuals[row] is not None]
        self.individuals = {table.individuals[row] for row in rows}
        self.size = len(self.individuals)
        pairs = {(table.individuals[row], labels[row]) for row in rows} if labels else ()
        self.counts = Counter(label for _, label in pairs)
        self.known = {label: count for label, count in self.counts.items() if label is not None}

    def shares(self):
        """Returns the share of each label."""
        return {label: Fraction(count, self.counts.total()) for label, count in self.counts.items()}


def class_holds(table, require, rows):
    """Returns whether a class of rows satisfies a model that judges each class."""
    model = require["model"]
    if model == "k_anonymity":
        return Sample(table, rows).size >= require["k"]
    if model == "personalized_k_anonymity":
        wanted = table.of_role("preference")[0].values
        least = max((wanted[row] or 0 for row in rows if table.individuals[row] is not None), default=0)
        return Sample(table, rows).size >= least
    column, level = require["column"], require.get("level", 0)
    labels = [None if value is None else column.labels(value)[level] for value in column.values]
    here, whole = Sample(table, rows, labels), Sample(table, range(table.rows), labels)
    if model in OF_GROUPS:
        return is_diverse(require, here)
    if model.startswith("t_closeness"):
        is_shared = table.has_individuals and here.size > 1 and here.size in here.counts.values()
        return not is_shared and distance(require, here.shares(), whole.shares()) <= Fraction(require["t"])
    return here.size > 0 and all(gains_little(require, here, whole, label) for label in whole.counts)


def is_diverse(require, here):
    """Returns whether a class has enough different labels, none of them too often."""
    model, l, size, counts = require["model"], require.get("l"), here.size, sorted(here.known.values(), reverse=True)
    most = max(counts, default=0)
    if model == "l_diversity":
        return min(len(counts), size + 1 - most) >= l
    if model == "entropy_l_diversity":
        parts = [count / sum(counts) for count in counts]
        return math.exp(-sum(part * math.log(part) for part in parts)) >= float(l) * (1 - 1e-9) and size + 1 - most >= l
    if model == "recursive_l_diversity":
        return len(counts) >= l and most < require["c"] * sum(counts[l - 1 :]) and most <= size + 1 - l
    bounded = require.get("values", here.known)
    return all(count <= require["alpha"] * size for label, count in here.known.items() if label in bounded)


def gains_little(require, here, whole, label):
    """Returns whether the share of a label in a class is close enough to its share in the input."""
    model = require["model"]
    share, expected = Fraction(here.counts[label], here.size), Fraction(whole.counts[label], whole.size)
    if model == "delta_disclosure":
        return share > 0 and abs(math.log(share / expected)) < float(require["delta"]) * (1 + 1e-9)
    gain = (share - expected) / expected
    is_bounded = model == "basic_beta_likeness" or gain <= -math.log(expected) * (1 + 1e-9) + 1e-12
    return is_bounded and gain <= Fraction(require["beta"])


def distance(require, here, whole):
    """Returns the distance of a class's shares from those of the input: equal, ordered or hierarchical."""
    column, model = require["column"], require["model"]
    excess = {label: here.get(label, 0) - whole.get(label, 0) for label in here.keys() | whole.keys()}
    if model == "t_closeness":
        return sum(map(abs, excess.values())) / 2
    if model == "t_closeness_ordered":
        values = sorted({*column.present()}, key=lambda value: sort_key(column.kind, value))
        ordered = [None] * (None in column.values) + [column.labels(value)[0] for value in values]
        moved = [sum(excess.get(label, 0) for label in ordered[: at + 1]) for at in range(len(ordered))]
        return sum(map(abs, moved)) / max(len(ordered) - 1, 1)
    cost = Fraction(0)
    for level in range(column.top):
        parts = Counter()
        for label, share in excess.items():
            parts[label if label is None else [label, *column.tree[label]][level]] += share
        cost += sum(map(abs, parts.values()))
    return cost / (2 * column.top)


def breaches(table, classes, require, population):
    """Returns the problems of a model.

    `classes` has lists of rows by their labels, and `population` has sets of individuals by the same labels.
    """
    model = require["model"]
    if model == "average_risk":
        smallest = {}
        for sample in (Sample(table, rows) for rows in classes.values()):
            for individual in sample.individuals:
                smallest[individual] = min(sample.size, smallest.get(individual, sample.size))
        mean = sum(Fraction(1, size) for size in smallest.values()) / len(smallest)
        return [] if mean <= Fraction(require["r"]) else ["the average risk is above r"]
    if model == "k_map":
        wrong = [labels for labels in classes if len(population.get(labels, ())) < require["k"]]
    elif model == "delta_presence":
        released = {labels: Sample(table, rows).size for labels, rows in classes.items()}
        shares = dict.fromkeys(released, 2)  # Above any bound, for classes without individuals of the population.
        shares |= {labels: Fraction(released.get(labels, 0), len(people)) for labels, people in population.items()}
        wrong = [share for share in shares.values() if not require.get("lo", 0) <= share <= require["hi"]]
    else:
        wrong = [rows for rows in classes.values() if not class_holds(table, require, rows)]
    return [f"classes that break {model}: {len(wrong)} of {len(classes)}"] if wrong else []
