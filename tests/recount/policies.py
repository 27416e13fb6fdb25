"""Random policies: the models, the method with its parameters, and the other keys."""

import json
from decimal import Decimal

from models import OF_GROUPS, OF_POPULATION, OF_VALUES
from tables import Dice, Table
from values import as_printed

KINDS = {
    "levels": ["auto", "exhaustive", "optimal", "anytime", "samarati", "incognito", "datafly", "strategies"],
    "regions": ["local", "subtree", "cells", "mondrian", "clusters", "best"],
    "centroids": ["mdav", "ona", "mona"],
    "groups": ["anatomy"],
    "noise": ["dp_centroids"],
}
KIND_OF = {method: kind for kind, methods in KINDS.items() for method in methods}
OBJECTIVES = {
    "levels": ["granularity_mean", "height", "relative_height", "precision_loss", "discernibility", "discernibility_star",
               "average_class_size", "non_uniform_entropy", "distinct_tuples", "suppressed_rows"],
    "regions": ["granularity_mean", "discernibility", "average_class_size"],
}


def toml(value):
    """Returns a value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, bool)) else str(value)


class Case(Table):
    """A random table with a random policy, and the files of both."""

    def __init__(self, seed, number, method, model, folder):
        r = Dice(f"{seed} {number}")
        if model in OF_POPULATION and KIND_OF[method] != "levels":
            method = r.choice(KINDS["levels"])
        kind = KIND_OF[method]
        for_groups = model if model in OF_GROUPS else r.choice(OF_GROUPS)
        super().__init__(r, kind, method, {"groups": for_groups, "noise": "k_anonymity"}.get(kind, model), folder)
        self.output, self.population, self.private = {}, [], folder / "out.json"
        self.draw_models()
        self.draw_policy()
        self.write_inputs()

    def parameters(self, model):
        """Returns random parameters of a model."""
        def hundredths(low, high):
            return Decimal(self.r.randint(low, high)) / 100

        few = self.r.choice([2, 2, 3])
        return {"l_diversity": {"l": few}, "entropy_l_diversity": {"l": hundredths(120, 250)},
                "recursive_l_diversity": {"c": hundredths(100, 400), "l": few},
                "alpha_k_anonymity": {"alpha": hundredths(45, 90)}, "t_closeness": {"t": hundredths(15, 60)},
                "t_closeness_ordered": {"t": hundredths(10, 50)}, "t_closeness_hierarchical": {"t": hundredths(10, 50)},
                "basic_beta_likeness": {"beta": hundredths(30, 300)},
                "enhanced_beta_likeness": {"beta": hundredths(50, 300)},
                "delta_disclosure": {"delta": hundredths(60, 250)}, "personalized_k_anonymity": {},
                "k_map": {"k": self.r.choice([3, 6, 9, 15])}, "average_risk": {"r": hundredths(10, 50)},
                "delta_presence": {"hi": hundredths(50, 100)} | ({"lo": hundredths(1, 10)} if self.r.chance(0.3) else {}),
                }[model]

    def draw_models(self):
        """Draws the models: that of the case, k-anonymity, and sometimes others."""
        r, quasi, sensitive = self.r, self.of_role("quasi"), self.of_role("sensitive")
        self.k = r.choice([5, 10, 20] if self.kind == "noise" else [2, 2, 3, 4, 5])
        if self.model == "l_diversity" and r.chance(0.2):
            self.k = None
        self.requires = [{"model": "k_anonymity", "k": self.k}] if self.k else []
        models = [self.model] if self.model != "k_anonymity" else []
        if sensitive and r.chance(0.3):
            models.append(r.choice(OF_GROUPS if self.kind == "groups" else OF_VALUES))
        can_restrict = len(quasi) > 1 and self.kind in ("levels", "regions")
        for model in dict.fromkeys(models):
            require = {"model": model} | self.parameters(model)
            if model not in OF_VALUES or self.draw_sensitive(require, can_restrict):
                self.requires.append(require)
        if can_restrict and self.k and r.chance(0.15):
            some = r.sample(quasi, r.randint(1, len(quasi) - 1))
            self.requires.append({"model": "k_anonymity", "k": self.k + 2, "quasi": [column.name for column in some]})

    def draw_sensitive(self, require, can_restrict):
        """Draws the sensitive column of a model and its other keys; returns whether any column fits the model."""
        r, model, sensitive = self.r, require["model"], self.of_role("sensitive")
        needs_tree, needs_order = model == "t_closeness_hierarchical", model == "t_closeness_ordered"
        fitting = [column for column in sensitive
                   if (column.rule == "file" or not needs_tree) and (column.kind != "text" or not needs_order)]
        if not fitting:
            return False
        column = require["column"] = r.choice(fitting)
        if len(sensitive) > 1 or r.chance(0.3):
            require["sensitive"] = column.name
        is_free = self.kind != "groups"
        if column.rule == "file" and not needs_tree and not needs_order and is_free and r.chance(0.25):
            require["level"] = 1
        texts = sorted({column.labels(value)[require.get("level", 0)] for value in column.present()})
        if model == "alpha_k_anonymity" and is_free and texts and r.chance(0.4):
            require["values"] = r.sample(texts, 1)
        if can_restrict and model in OF_GROUPS and r.chance(0.25):
            require["quasi"] = [r.choice(self.of_role("quasi")).name]
        return True

    def draw_policy(self):
        """Draws the method and the other keys, and writes the policy."""
        r, quasi, objectives = self.r, self.of_role("quasi"), OBJECTIVES.get(self.kind)
        is_strict = self.method in ("samarati", "incognito") and r.chance(0.7)
        self.limit = Decimal("0" if is_strict else r.choice(["0", "0", "0.05", "0.1", "0.3", "0.5"]))
        guarding = [require for require in self.requires if "column" in require and not {"values", "quasi"} & require.keys()]
        guarded = {require["column"].name for require in guarding}
        accepted = [column.name for column in self.of_role("sensitive") if column.name not in guarded]
        self.settings = self.draw_settings()
        lines = {"k": self.k, "suppression_limit": self.limit, "rows_are_individuals": not self.has_individuals,
                 "others": "drop" if self.of_role("others") else None, "accept_homogeneity": accepted,
                 "method": {self.method: self.settings} if self.settings else self.method,
                 "effort": {"nodes": r.choice([20, 200])} if self.method == "anytime" else None,
                 "objective": r.choice(objectives) if objectives and r.chance(0.4) else None}
        if self.kind == "regions":
            if len(quasi) > 1 and r.chance(0.15):
                r.choice(quasi).line["recode"] = "global"
            self.output = {"ends": r.choice(["values", "closed"] + ["cuts"] * (self.method != "clusters"))}
            self.output |= {"intervals": "columns"} if r.chance(0.25) else {}
        self.output |= {"left_out": "names"} if r.chance(0.2) else {}
        if any(require["model"] in OF_POPULATION for require in self.requires):
            lines["population"] = self.write_population()
        self.write_policy(lines)

    def write_policy(self, lines):
        """Writes the policy: these lines, the models, the output and the columns."""
        shown = [{name: value for name, value in require.items() if name != "column"} for require in self.requires]
        sections = [("[[require]]", require) for require in shown[bool(self.k):]] + [("[output]", self.output)]
        sections.append(("[columns]", {column.name: column.line for column in self.columns if column.role != "others"}))
        text = [f"{name} = {toml(value)}" for name, value in lines.items() if value]
        for title, keys in sections:
            text += [title, *(f"{name} = {toml(value)}" for name, value in keys.items())]
        (self.folder / "policy.toml").write_text("\n".join(text) + "\n")

    def draw_settings(self):
        """Returns random parameters of the method, or nothing for its defaults."""
        r = self.r
        if self.method == "strategies":
            ends = {column.name: (column.line.get("min_level", 0), column.line.get("max_level", column.top))
                    for column in self.of_role("quasi")}
            nodes = [{name: r.randint(*end) for name, end in ends.items()} for _ in range(3)]
            return nodes + [{name: high for name, (_, high) in ends.items()}]
        if self.method == "dp_centroids":
            return {"epsilon": r.choice([Decimal("0.5"), 2, 50]), "order": r.choice(["hilbert", "distance"])}
        choices = {"mondrian": {"split": ["span", "entropy", "relaxed", "loss"]},
                   "clusters": {"start": ["neighbours", "cuts"]},
                   **dict.fromkeys(KINDS["centroids"], {"centroid": ["mean", "median"]})}
        return {name: r.choice(values) for name, values in choices.get(self.method, {}).items() if r.chance(0.8)}

    def write_population(self):
        """Writes the individuals of the input and others like them; returns the name of the file."""
        r, quasi, pid = self.r, self.of_role("quasi"), self.of_role("individual")
        columns = quasi + (pid if r.chance(0.7) else [])
        rows = [[column.cells[row] for column in columns] for row in range(self.rows)]
        for at in range(self.rows * r.choice([0, 1, 3] if self.model == "k_map" else [1, 2, 4])):
            rows.append([r.choice(column.cells) for column in quasi])
            rows[-1] += [f"X{at}" if column.kind == "text" else -at - 1 for column in columns[len(quasi):]]
        r.shuffle(rows)
        for at, row in enumerate(rows):
            values = [as_printed(cell, column.type) for cell, column in zip(row, quasi)]
            self.population.append((values, row[-1] if len(columns) > len(quasi) else at))
        cells = {column.name: [row[at] for row in rows] for at, column in enumerate(columns)}
        return self.write(self.folder / "population", cells)
