"""Writes data/admissions.csv: python3 data/admissions.py > data/admissions.csv

2,000 admissions of made-up people to a made-up hospital in 2024. Every number comes from one linear congruential
generator with a fixed start, so that every run writes the same bytes.
"""

from datetime import date, timedelta

state = 20240101


def below(end):
    """Returns the next number from 0 to end - 1."""
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) * end >> 31


def pick(weighted):
    """Returns one of some values, each as often as its weight says."""
    number = below(sum(weight for weight, _ in weighted))
    for weight, value in weighted:
        number -= weight
        if number < 0:
            return value


COUNTRIES = [(600, "Germany"), (130, "DE"), (60, "Poland"), (40, "Turkey"), (30, "Syria"), (30, "UA"), (25, "Vietnam")]
COUNTRIES += [(20, "Romania"), (18, "Italy"), (15, "RU"), (12, "Afghanistan"), (10, "Czech Republic"), (8, "China")]
COUNTRIES += [(8, "India"), (6, "Nigeria"), (6, "US"), (4, "Brazil"), (4, "Iraq"), (3, "Tunisia"), (10, "unknown")]
AREAS = [(30, "010"), (25, "011"), (20, "012"), (10, "013"), (6, "014"), (5, "016"), (4, "017"), (2, "027"), (1, "041")]
# Weight, usual ward, code, ages from and to, cost. A third of the patients lie elsewhere.
CASES = [(90, "A1", "I10", 30, 99, 900), (60, "A1", "I21.4", 40, 99, 7800), (50, "A1", "I50.9", 50, 99, 5200)]
CASES += [(70, "A2", "E11.9", 35, 99, 2100), (60, "A2", "J18.9", 0, 99, 3900), (40, "A2", "A09.9", 0, 99, 1100)]
CASES += [(30, "A2", "K29.7", 16, 99, 1300), (25, "A2", "N39.0", 16, 99, 1500), (8, "A2", "B24", 18, 80, 4100)]
CASES += [(70, "B1", "S72.0", 60, 99, 11800), (60, "B1", "K35.8", 4, 60, 4300), (50, "B1", "K80.2", 20, 99, 4900)]
CASES += [(40, "B1", "S52.5", 0, 99, 3100), (25, "B1", "C18.9", 40, 99, 16400), (15, "B1", "C50.9", 30, 99, 9700)]
CASES += [(35, "B2", "G40.9", 1, 99, 2600), (35, "B2", "I63.9", 40, 99, 8900), (25, "B2", "G43.9", 10, 70, 1200)]
CASES += [(30, "C1", "F32.2", 12, 99, 6200), (25, "C1", "F10.2", 18, 99, 5400), (12, "C1", "F20.0", 17, 80, 9100)]

print("patient_no,birth_date,sex,country,postcode,admitted,ward,triage,icd10,cost")
rows = []
number = 100_000
while len(rows) < 2000:
    number += 1 + below(9)
    birth = date(1928, 1, 1) + timedelta(days=below(96 * 365))
    sex, country = pick([(51, "f"), (48, "m"), (1, "x")]), pick(COUNTRIES)
    postcode = pick(AREAS) + f"{below(20) * 5:02}"
    for _ in range(pick([(70, 1), (20, 2), (7, 3), (3, 5)])):
        admitted = date(2024, 1, 1) + timedelta(days=below(366))
        age = (admitted - birth).days // 365
        cases = [(case[0], case) for case in CASES if case[3] <= age <= case[4]]
        _, ward, code, _, _, cost = pick(cases)
        ward = pick([(10, ward), (1, "A1"), (1, "A2"), (1, "B1"), (1, "B2"), (1, "C1")])
        cents = cost * (60 + below(80)) + below(10_000)
        triage = pick([(5, 1), (15, 2), (45, 3), (25, 4), (10, 5)])
        rows.append((admitted, f"{number},{birth},{sex},{country},{postcode},{admitted},{ward},{triage},{code},{cents / 100:.2f}"))
rows = sorted(rows[:2000])
for _, row in rows:
    print(row)
