#!/usr/bin/env python3
"""Generates a table of benefit claims, for benchmarks beside the visits of `kanon generate`.

    python3 benches/check_table.py --rows 10000000 --to claims.parquet [--seed 7]

| column | type | values |
|---|---|---|
| claimant_id | integer | the individual: 0.6 people for each row, a few of them with many rows |
| age | integer | 18 to 79 |
| income | integer | log-normal with a long tail up to 20 million, 30 % round; NULL in 4 % of the rows |
| postal_code | text of 7 bytes | 36,000 codes in 3,000 areas, Zipf |
| town | text of 19 to 31 bytes | 1,500 towns that follow from the postal code; 2 % NULL |
| occupation | text of 20 to 42 bytes | 1,152 titles, Zipf; 8 % NULL |
| hired | date | more of them recent; 4 % NULL |
| filed_at | timestamp | any second of 2019 to 2024 |
| benefit | text | sensitive: 50 values, skewed, and related to the age; 5 % NULL |
| employer | text | sensitive: 5,000 values, Zipf, and related to the occupation; 1 % NULL |
| amount | float | 10 % NULL |

The hierarchy of the occupations goes to a CSV file beside the table (claims_occupations.csv): each
title, its field (24) and its sector (6). DuckDB computes the rows and pyarrow writes them, one row
group at a time, so memory does not grow with the rows. Each value depends on the seed and the number
of its row or individual alone: the same versions of both packages write the same rows.
"""

import argparse
import csv
import pathlib

import duckdb
import pyarrow
import pyarrow.parquet

ROW_GROUP = 2**20

GRADES = ["Assistant", "Certified", "Senior"]
SECTORS = {
    "Construction": ["carpentry", "masonry", "plumbing", "roofing"],
    "Industry": ["chemical", "electrical", "mechanical", "textile"],
    "Health": ["dental", "geriatric", "paediatric", "surgical"],
    "Transport": ["aviation", "maritime", "railway", "road haulage"],
    "Commerce": ["insurance", "mortgage", "procurement", "wholesale"],
    "Public service": ["archive", "customs", "municipal", "taxation"],
}
FIELDS = [field for fields in SECTORS.values() for field in fields]
ROLES = [
    "adviser", "analyst", "apprentice", "clerk", "consultant", "controller", "coordinator", "dispatcher",
    "inspector", "instructor", "manager", "planner", "researcher", "supervisor", "technician", "worker",
]
TOWNS = [
    "Abbotsbury", "Aldbourne", "Amberley", "Appleford", "Ashbourne", "Aylesham", "Barnstone", "Bickleigh",
    "Bramfield", "Bridgewater", "Broadstone", "Burnhope", "Calverton", "Castlebury", "Cheriton", "Colebrook",
    "Cranleigh", "Darlington", "Deepdale", "Eastbourne", "Elmswell", "Fairford", "Farnborough", "Foxholes",
    "Glastonby", "Greenhithe", "Hadleigh", "Harrowgate", "Hawksmoor", "Heathfield", "Highbridge", "Holmfirth",
    "Ilminster", "Kelmscott", "Kingsbury", "Lambourn", "Langport", "Leighton", "Longparish", "Malmsbury",
    "Maplewood", "Millbrook", "Netherton", "Northwick", "Oakhampton", "Otterburn", "Pendlebury", "Queensbury",
    "Ravenglass", "Redmarley", "Sandringham", "Shelford", "Stonehaven", "Tattershall", "Thornbury", "Ullswater",
    "Wallingford", "Westerham", "Whitchurch", "Yarmouth",
]  # fmt: skip
PLACES = [
    "by the Lake", "by the Sea", "in the Forest", "in the Marsh", "in the Vale", "next the Sea", "on the Hill",
    "on the Moor", "on the Wold", "under Edge", "under Lyme", "under Wood", "upon Avon", "upon Derwent",
    "upon Humber", "upon Medway", "upon Severn", "upon Stour", "upon Swale", "upon Tamar", "upon Thames",
    "upon Trent", "upon Tyne", "upon Wharfe", "upon Wye",
]  # fmt: skip
BENEFITS = [
    f"{kind} {form}"
    for kind in [
        "Carer's", "Child", "Disability", "Heating", "Housing", "Jobseeker's", "Parental", "Sickness", "Training",
        "Widow's",
    ]
    for form in ["advance", "allowance", "arrears", "grant", "supplement"]
]  # fmt: skip
EMPLOYERS = [
    f"{TOWNS[name]} {FIELDS[trade].capitalize()} {form}"
    for name in range(50)
    for trade in range(20)
    for form in ["and Sons", "Group", "Holding", "Limited", "Partners"]
]

# Draws: uniform in [0, 1), of a salt and the number of a row or an individual; NULL in a share of the
# rows; a rank from 1 to `most` whose frequency falls as 1 / rank (Zipf with exponent 1).
MACROS = """
CREATE MACRO draw(number, salt) AS (hash(number, salt, {seed}) >> 11) / 9007199254740992.0;
CREATE MACRO unless_drawn(value, number, salt, share) AS
    CASE WHEN draw(number, salt) < share THEN NULL ELSE value END;
CREATE MACRO zipf(number, salt, most) AS least(pow(most + 1, draw(number, salt))::INT, most);
CREATE MACRO normal(number, salt) AS
    sqrt(-2 * ln(1 - draw(number, salt))) * cos(2 * pi() * draw(number, salt + 1000));
"""

ROWS = """
WITH individuals AS (
    SELECT row, floor({people} * pow(draw(row, 1), 1.5))::BIGINT AS who FROM range({rows}) AS rows (row)
), drawn AS (
    SELECT row, who,
        (18 + 31 * (draw(who, 2) + draw(who, 3)))::INT AS age,
        exp(10.2 + 0.8 * normal(who, 4) + 0.1 * normal(row, 5))
            / CASE WHEN draw(who, 26) < 0.005 THEN 1 - draw(who, 27) ELSE 1 END AS earned,
        1000 + (zipf(who, 6, 3000) * 2741) % 9000 AS area,
        (zipf(who, 7, 1152) * 431) % 1152 AS title,
        CASE WHEN draw(row, 8) < 0.5 THEN zipf(row, 9, 50) ELSE (50 * draw(row, 10))::INT END AS benefit,
        zipf(row, 11, 5000) AS employer,
    FROM individuals
)
SELECT
    100000000 + (who * 1103515245 + {seed}) % 2147483648 AS claimant_id,
    least(age, 79) AS age,
    unless_drawn(least(
        CASE WHEN draw(row, 12) < 0.3 THEN round(earned, -3) ELSE round(earned) END, 20000000
    )::BIGINT, row, 13, 0.04) AS income,
    area || ' ' || ['AA', 'AB', 'BE', 'CD', 'DK', 'EX', 'GP', 'HR', 'KW', 'LS', 'NV', 'ZT'][
        1 + (12 * draw(who, 14))::INT % 12] AS postal_code,
    unless_drawn({towns}[1 + area % 60] || ' ' || {places}[1 + area // 60 % 25], who, 15, 0.02) AS town,
    unless_drawn({titles}[1 + title], who, 16, 0.08) AS occupation,
    unless_drawn(
        DATE '2024-12-31' - ((age - 16) * 365 * pow(draw(who, 17), 2))::INT, who, 18, 0.04
    ) AS hired,
    TIMESTAMP '2019-01-01' + to_seconds((189388799 * draw(row, 19))::BIGINT) AS filed_at,
    unless_drawn({benefits}[
        1 + (benefit + CASE WHEN draw(row, 20) < 0.25 THEN age // 10 * 7 ELSE 0 END) % 50
    ], row, 21, 0.05) AS benefit,
    unless_drawn({employers}[
        1 + (employer * 1237 + CASE WHEN draw(row, 22) < 0.3 THEN title // 192 * 801 ELSE 0 END) % 5000
    ], row, 23, 0.01) AS employer,
    unless_drawn(round(50 + 800 * pow(draw(row, 24), 3), 2), row, 25, 0.1) AS amount,
FROM drawn
"""


def occupations():
    """Returns the title, field and sector of each occupation, one field after the other."""
    return [
        (f"{grade} {field} {role}", field, sector)
        for sector, fields in SECTORS.items()
        for field in fields
        for grade in GRADES
        for role in ROLES
    ]


def hierarchy_file(table):
    """Returns the path of the hierarchy that belongs to a table."""
    return table.with_name(f"{table.stem}_occupations.csv")


def text_list(values):
    return "[" + ", ".join("'" + value.replace("'", "''") + "'" for value in values) + "]"


def write_table(rows, seed, to):
    """Writes the hierarchy and then the table; the table gets its name when it is complete."""
    with open(hierarchy_file(to), "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("occupation", "field", "sector"), *occupations()])
    db = duckdb.connect(config={"memory_limit": "2GiB"})
    db.execute("SET enable_progress_bar = false")
    db.execute(MACROS.format(seed=seed))
    sql = ROWS.format(
        rows=rows,
        people=max(rows * 6 // 10, 1),
        seed=seed,
        towns=text_list(TOWNS),
        places=text_list(PLACES),
        titles=text_list(title for title, *_ in occupations()),
        benefits=text_list(BENEFITS),
        employers=text_list(EMPLOYERS),
    )
    batches = db.sql(sql).to_arrow_reader(ROW_GROUP)
    unfinished = to.with_name(f"{to.name}.part")
    with pyarrow.parquet.ParquetWriter(unfinished, batches.schema) as writer:
        held, held_rows = [], 0
        for batch in batches:
            held.append(batch)
            held_rows += batch.num_rows
            if held_rows >= ROW_GROUP:
                writer.write_table(pyarrow.Table.from_batches(held), ROW_GROUP)
                held, held_rows = [], 0
        if held:
            writer.write_table(pyarrow.Table.from_batches(held), ROW_GROUP)
    unfinished.rename(to)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True, help="the Parquet file to write")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    if args.rows < 1:
        parser.error("--rows is a whole number above 0")
    write_table(args.rows, args.seed, args.to)


if __name__ == "__main__":
    main()
