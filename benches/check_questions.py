"""The questions of measures.py: what is asked of a table, in SQL and as Polars expressions.

Every question is asked as a measure of kanon and as the query that an analyst would write for
DataFusion, DuckDB and Polars. All of them return the same numbers.
"""

import dataclasses
from collections.abc import Callable

TITLES = {
    "k": "k",
    "kl": "k + l",
    "people": "individuals",
    "models": "class models",
    "kl_wide": "k + l, wide",
    "models_wide": "class models, wide",
}


@dataclasses.dataclass(frozen=True)
class Keys:
    """The quasi-identifiers, generalized alike by each engine."""

    kanon: list
    datafusion: list
    duckdb: list
    polars: Callable  # of the module polars, so that only its own process imports it
    joins_sectors: bool = False  # whether all engines but kanon look `sector` up


@dataclasses.dataclass(frozen=True)
class Table:
    individual: str
    sensitive: dict  # the sensitive column of each question that has one
    keys: dict
    has_hierarchy: bool = False


def as_they_are(columns):
    return Keys(columns, columns, columns, lambda pl: [pl.col(column) for column in columns])


OTHERS = ["sex", "race", "education", "marital_status"]

VISITS = Table(
    individual="patient_id",
    sensitive={"kl": "diagnosis", "models": "diagnosis"},
    keys={
        "generalized": Keys(
            kanon=["generalize_date(dob, 'decade')", "generalize_prefix(zip, 3)", *OTHERS],
            datafusion=["date_part('year', dob) / 10", "left(zip, 3) || '*'", *OTHERS],
            duckdb=["year(dob) // 10", "left(zip, 3) || '*'", *OTHERS],
            polars=lambda pl: [pl.col("dob").dt.year() // 10, pl.col("zip").str.head(3) + "*", *OTHERS],
        ),
        "raw": as_they_are(["dob", "zip", *OTHERS]),
    },
)

CLAIMS = Table(
    individual="claimant_id",
    sensitive={"kl": "benefit", "models": "benefit", "kl_wide": "employer", "models_wide": "employer"},
    keys={
        "few": Keys(
            kanon=[
                "generalize_range(age, 30)",
                "generalize_prefix(postal_code, 1)",
                "generalize('occupation', occupation, 2)",
                "generalize_date(filed_at, 'decade')",
            ],
            datafusion=[
                "age / 30 * 30",
                "left(postal_code, 1) || '*'",
                "sector",
                "date_part('year', filed_at) / 10",
            ],
            duckdb=[
                "age // 30 * 30",
                "left(postal_code, 1) || '*'",
                "sector",
                "year(filed_at) // 10",
            ],
            polars=lambda pl: [
                pl.col("age") // 30 * 30,
                pl.col("postal_code").str.head(1) + "*",
                pl.col("sector"),
                pl.col("filed_at").dt.year() // 10,
            ],
            joins_sectors=True,
        ),
        "generalized": Keys(
            kanon=[
                "generalize_range(age, 20)",
                "generalize_range(income, 70000)",
                "generalize_prefix(postal_code, 1)",
                "generalize_prefix(town, 12)",
                "generalize('occupation', occupation, 2)",
                "generalize_date(hired, 'century')",
                "generalize_date(filed_at, 'decade')",
            ],
            datafusion=[
                "age / 20 * 20",
                "income / 70000 * 70000",
                "left(postal_code, 1) || '*'",
                "left(town, 12) || '*'",
                "sector",
                "date_part('year', hired) / 100",
                "date_part('year', filed_at) / 10",
            ],
            duckdb=[
                "age // 20 * 20",
                "income // 70000 * 70000",
                "left(postal_code, 1) || '*'",
                "left(town, 12) || '*'",
                "sector",
                "year(hired) // 100",
                "year(filed_at) // 10",
            ],
            polars=lambda pl: [
                pl.col("age") // 20 * 20,
                pl.col("income") // 70000 * 70000,
                pl.col("postal_code").str.head(1) + "*",
                pl.col("town").str.head(12) + "*",
                pl.col("sector"),
                pl.col("hired").dt.year() // 100,
                pl.col("filed_at").dt.year() // 10,
            ],
            joins_sectors=True,
        ),
        "raw": as_they_are(["age", "income", "postal_code", "town", "occupation", "hired", "filed_at"]),
    },
    has_hierarchy=True,
)

TABLES = {"visits": VISITS, "claims": CLAIMS}


def questions_of(table):
    return ["k", "kl", "people", "models", *[name for name in table.sensitive if name.endswith("_wide")]]


def text(value):
    return "'" + str(value).replace("'", "''") + "'"


def setup(engine, table, hierarchy):
    """Returns the statements that an engine runs before any query."""
    if not table.has_hierarchy:
        return []
    statements = [f"CREATE TABLE occupations AS SELECT * FROM {text(hierarchy)}"]
    if engine == "kanon":
        statements.append("SELECT * FROM load_hierarchy('occupation', (SELECT * FROM occupations))")
    return statements


def measure(table, keys, question, file):
    quasi, sensitive = ", ".join(keys.kanon), table.sensitive.get(question)
    measures = {
        "k": [f"k_anonymity({quasi})"],
        "kl": [f"k_anonymity({quasi})", f"l_diversity({sensitive}, {quasi})"],
        "people": [f"k_anonymity_individuals({table.individual}, {quasi})"],
        "models": [
            f"k_anonymity({quasi})",
            f"l_diversity({sensitive}, {quasi})",
            f"alpha_k_anonymity({sensitive}, {quasi})",
            f"entropy_l_diversity({sensitive}, {quasi})",
            f"recursive_l_diversity(2, {sensitive}, {quasi})",
            f"t_closeness({sensitive}, {quasi})",
            f"basic_beta_likeness({sensitive}, {quasi})",
            f"enhanced_beta_likeness({sensitive}, {quasi})",
            f"delta_disclosure({sensitive}, {quasi})",
        ],
    }
    return f"SELECT {', '.join(measures[question.removesuffix('_wide')])} FROM {text(file)}"


def one_group_by(columns, source, what, outer):
    return f"SELECT {outer} FROM (SELECT {what} FROM {source} GROUP BY {', '.join(columns)})"


def two_group_bys(columns, source, column, what, outer):
    """Groups by the class and the column first, then by the class."""
    keys = ", ".join(f"{key} AS q{at}" for at, key in enumerate(columns))
    pairs = f"SELECT {keys}, {column} AS v, count(*) AS n FROM {source} GROUP BY {', '.join(columns)}, {column}"
    names = ", ".join(f"q{at}" for at in range(len(columns)))
    return f"SELECT {outer} FROM (SELECT {what} FROM ({pairs}) GROUP BY {names})"


# Of each class: its size, the number and the sum of its values but NULL, the most frequent of them;
# of all values, NULL included: the greatest and least ratio of n to the share q in the whole table.
CLASS_FIGURES = """
        CAST(sum(n) AS DOUBLE) AS c, count(v) AS d, CAST(sum(known) AS DOUBLE) AS m, max(known) AS most,
        sum(known * ln(known)) AS n_ln_n, count(*) AS present, max(kinds) AS kinds,
        max(n / q) AS high, min(n / q) AS low, max(n / (q * (1 - ln(q)))) AS capped"""
PAIRS = """
    facts AS (
        SELECT v, w / CAST(sum(w) OVER () AS DOUBLE) AS q, count(*) OVER () AS kinds
        FROM (SELECT {column} AS v, count(*) AS w FROM {file} GROUP BY {column})
    ), counted AS (
        SELECT {keys}, {column} AS v, count(*) AS n, CASE WHEN {column} IS NOT NULL THEN count(*) END AS known
        FROM {source} GROUP BY {columns}, {column}
    )"""
WORST_CLASS = """
SELECT min(c), min(d), max(coalesce(most, 0) / c), min(coalesce(exp(ln(m) - n_ln_n / m), 0)),
    max(CASE WHEN m > most THEN most / (m - most) ELSE CAST('inf' AS DOUBLE) END), max(t), max(high / c - 1),
    CASE WHEN NOT bool_or(capped > c * (1 + 1e-12)) THEN max(high / c - 1) END,
    max(CASE WHEN present = kinds THEN greatest(ln(high / c), -ln(low / c)) ELSE CAST('inf' AS DOUBLE) END)
FROM classes"""


def models_by_hand(columns, source, column, file, distance):
    """Computes all class models by two GROUP BYs; `distance` says how the one of t-closeness is computed."""
    names = ", ".join(f"q{at}" for at in range(len(columns)))
    keys = ", ".join(f"{key} AS q{at}" for at, key in enumerate(columns))
    known_facts = "JOIN facts ON counted.v IS NOT DISTINCT FROM facts.v"
    pairs = PAIRS.format(column=column, file=text(file), keys=keys, source=source, columns=", ".join(columns))
    figures = CLASS_FIGURES.replace("count(v)", "count(counted.v)")
    if distance == "list":
        classes = f"""lists AS (
        SELECT {figures}, list({{n: n, q: q}}) AS pairs FROM counted {known_facts} GROUP BY {names}
    ), classes AS (
        SELECT *, list_sum(list_transform(pairs, lambda pair: greatest(pair.n / c - pair.q, 0))) AS t FROM lists
    )"""
    else:
        classes = f"""sized AS (
        SELECT *, CAST(sum(n) OVER (PARTITION BY {names}) AS DOUBLE) AS size FROM counted
    ), classes AS (
        SELECT {figures}, sum(greatest(n / size - q, 0)) AS t
        FROM sized AS counted {known_facts} GROUP BY {names}
    )"""
    return f"WITH {pairs}, {classes} {WORST_CLASS}"


def by_hand(engine, columns, table, keys, question, file):
    """Returns the names and texts of the queries that an analyst would write."""
    source = text(file)
    if keys.joins_sectors and "sector" in columns:
        source += " LEFT JOIN occupations USING (occupation)"
    if question == "k":
        return [("GROUP BY", one_group_by(columns, source, "count(*) AS c", "min(c)"))]
    if question == "people":
        distinct = f"count(DISTINCT {table.individual}) AS c"
        return [
            ("count(DISTINCT)", one_group_by(columns, source, distinct, "min(c)")),
            ("two GROUP BYs", two_group_bys(columns, source, table.individual, "count(v) AS c", "min(c)")),
        ]
    sensitive = table.sensitive[question]
    if question.startswith("models"):
        distance = {"DuckDB": "list", "DataFusion": "window"}[engine]
        return [("two GROUP BYs", models_by_hand(columns, source, sensitive, file, distance))]
    two = two_group_bys(columns, source, sensitive, "sum(n) AS c, count(v) AS d", "min(c), min(d)")
    both = f"count(*) AS c, count(DISTINCT {sensitive}) AS d"
    # DataFusion takes very long, and more memory than there is, for both counts in one GROUP BY.
    one = [("count(DISTINCT)", one_group_by(columns, source, both, "min(c), min(d)"))]
    return [("two GROUP BYs", two), *(one if engine == "DuckDB" else [])]


@dataclasses.dataclass(frozen=True)
class Query:
    engine: str  # the process that runs it: kanon, DuckDB or Polars
    peer: str  # what it is compared as: measure, DataFusion, DuckDB or Polars
    name: str
    text: str


def queries(table, keys, question, file):
    """Returns the measure and all the queries by hand, so that neighbours are of different engines."""
    found = [Query("kanon", "measure", "measure", measure(table, keys, question, file))]
    for name, sql in by_hand("DuckDB", keys.duckdb, table, keys, question, file):
        found.append(Query("DuckDB", "DuckDB", f"DuckDB, {name}", sql))
    for name, sql in by_hand("DataFusion", keys.datafusion, table, keys, question, file):
        found.append(Query("kanon", "DataFusion", f"DataFusion, {name}", sql))
    for name in polars_ways(question):
        found.append(Query("Polars", "Polars", f"Polars, {name}", name))
    if keys.kanon != keys.datafusion and not question.startswith("models"):
        for name, sql in by_hand("DataFusion", keys.kanon, table, keys, question, file):
            found.append(Query("kanon", "DataFusion", f"DataFusion, {name}, generalize functions", sql))
    return found


def polars_ways(question):
    if question == "k":
        return ["group_by"]
    if question.startswith("models"):
        return ["two group_bys"]
    return ["two group_bys", "n_unique"]


def polars_query(pl, table, keys, question, file, hierarchy, way):
    """Returns the lazy query of one row."""
    rows = pl.scan_parquet(file)
    if keys.joins_sectors:
        sectors = pl.scan_csv(hierarchy).select("occupation", "sector")
        rows = rows.join(sectors, on="occupation", how="left")
    expressions = [pl.col(key) if isinstance(key, str) else key for key in keys.polars(pl)]
    columns = [key.alias(f"q{at}") for at, key in enumerate(expressions)]
    names = [f"q{at}" for at in range(len(columns))]
    if question == "k":
        return rows.group_by(columns).agg(c=pl.len()).select(pl.min("c"))
    column = table.individual if question == "people" else table.sensitive[question]
    if way == "n_unique":
        distinct = pl.col(column).drop_nulls().n_unique()
        if question == "people":
            return rows.group_by(columns).agg(c=distinct).select(pl.min("c"))
        return rows.group_by(columns).agg(c=pl.len(), d=distinct).select(pl.min("c"), pl.min("d"))
    counted = rows.group_by([*columns, pl.col(column).alias("v")]).agg(n=pl.len())
    if question == "people":
        return counted.group_by(names).agg(c=pl.col("v").count()).select(pl.min("c"))
    if question.startswith("kl"):
        classes = counted.group_by(names).agg(c=pl.sum("n"), d=pl.col("v").count())
        return classes.select(pl.min("c"), pl.min("d"))
    facts = rows.group_by(pl.col(column).alias("v")).agg(w=pl.len())
    facts = facts.select("v", q=pl.col("w") / pl.col("w").sum(), kinds=pl.len())
    n, q, known = pl.col("n"), pl.col("q"), pl.col("known")
    counted = counted.with_columns(n=n.cast(pl.Float64)).join(facts, on="v", nulls_equal=True)
    counted = counted.with_columns(known=pl.when(pl.col("v").is_not_null()).then(n))
    classes = counted.group_by(names).agg(
        c=n.sum(),
        d=known.count(),
        m=known.sum(),
        most=known.max(),
        n_ln_n=(known * known.log()).sum(),
        present=pl.len(),
        kinds=pl.max("kinds"),
        high=(n / q).max(),
        low=(n / q).min(),
        capped=(n / (q * (1 - q.log()))).max(),
        t=(n / n.sum() - q).clip(0).sum(),
    )
    c, m, most, high = (pl.col(name) for name in ["c", "m", "most", "high"])
    gain, broken = (high / c - 1).max(), (pl.col("capped") > c * (1 + 1e-12)).any()
    apart = pl.max_horizontal((high / c).log(), -(pl.col("low") / c).log())
    return classes.select(
        pl.min("c"),
        pl.min("d"),
        alpha=(most.fill_null(0) / c).max(),
        entropy=pl.when(m > 0).then((m.log() - pl.col("n_ln_n") / m).exp()).otherwise(0).min(),
        recursive=pl.when(m > most).then(most / (m - most)).otherwise(float("inf")).max(),
        t=pl.max("t"),
        basic=gain,
        enhanced=pl.when(~broken).then(gain),
        delta=pl.when(pl.col("present") == pl.col("kinds")).then(apart).otherwise(float("inf")).max(),
    )
