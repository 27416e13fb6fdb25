"""Sort keys of values, periods of days, and labels in the hierarchies that come with kanon."""

import datetime
import math
import struct
from decimal import Decimal, localcontext

import pyarrow as pa

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
PERIODS = ["day", "month", "quarter", "year", "decade", "century"]
MONTHS = {"month": 1, "quarter": 3}
YEARS = {"year": 1, "decade": 10, "century": 100}
# Some values of the hierarchies that come with kanon, with their labels by the standards that docs/reference.md names.
KNOWN = {
    "country": {"DE": ["Western Europe", "Europe"], "fra": ["Western Europe", "Europe"],
                "Italy": ["Southern Europe", "Europe"], "JP": ["Eastern Asia", "Asia"], "CHN": ["Eastern Asia", "Asia"],
                "Kenya": ["Eastern Africa", "Africa"], "US": ["Northern America", "Americas"]},
    "us_state": {"MA": ["New England", "Northeast"], "Vermont": ["New England", "Northeast"],
                 "TX": ["West South Central", "South"], "west virginia": ["South Atlantic", "South"],
                 "CA": ["Pacific", "West"], "Ohio": ["East North Central", "Midwest"]},
    "icd10": {"E11.9": ["E11", "E10-E14", "E00-E90"], "E10": ["E10", "E10-E14", "E00-E90"],
              "i21": ["I21", "I20-I25", "I00-I99"], "I25.1": ["I25", "I20-I25", "I00-I99"],
              "U07.1": ["U07", "U00-U49", "U00-U85"]},
    "isced": {"0": ["low"], "ED2": ["low"], "ISCED 3": ["medium"], "4": ["medium"], "5": ["high"], "8": ["high"]},
    "email": {"Ann@Mail.Example.ORG": ["mail.example.org", "org"], "b@mail.example.org": ["mail.example.org", "org"],
              "c@x-1.co.uk": ["x-1.co.uk", "uk"], "d@example.org": ["example.org", "org"]},
    "ip": {"203.0.113.77": ["203.0.113.0/24", "203.0.0.0/16", "203.0.0.0/8"],
           "203.0.7.1": ["203.0.7.0/24", "203.0.0.0/16", "203.0.0.0/8"],
           "10.1.2.3": ["10.1.2.0/24", "10.1.0.0/16", "10.0.0.0/8"],
           "2001:db8:85a3:8d3::8a2e": ["2001:db8:85a3:8d3::/64", "2001:db8:85a3::/48", "2001:db8::/32"]},
}


def sort_key(kind, value):
    """Returns a key that orders the values of one kind; NaN is above all numbers."""
    if kind == "number":
        number = Decimal(value)
        rank = 2 if number.is_nan() else 0 if number.is_finite() else 1 if number > 0 else -1
        return (rank, Decimal(0) if rank else number)
    if kind == "moment":
        moment = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
        return (moment - EPOCH) // datetime.timedelta(microseconds=1)
    return value.toordinal() if kind == "day" else value


def comparable(cell):
    """Returns a written cell in a form in which NaN equals NaN, and 1 is not True."""
    return ("number", sort_key("number", cell)) if isinstance(cell, (float, Decimal)) else (type(cell).__name__, cell)


def as_float32(number):
    """Returns the 32-bit float next to a number."""
    return struct.unpack("f", struct.pack("f", number))[0]


def as_printed(number, arrow_type):
    """Returns the decimal number that the shortest text of a float means: kanon reads 0.1 as 0.1."""
    if not isinstance(number, float):
        return number
    if arrow_type != pa.float32() or not math.isfinite(number):
        return Decimal(repr(number))
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))
    return next(Decimal(text) for text in texts if as_float32(float(text)) == number)


def round_down(number, step, origin):
    """Returns the greatest origin + i * step that is not above a number."""
    with localcontext() as context:
        context.prec = 400
        return ((number - origin) / step).to_integral_value("ROUND_FLOOR") * step + origin


def first_day(value, period):
    """Returns the first day of the day's or moment's period."""
    day = datetime.date(value.year, value.month, value.day)
    if period in YEARS:
        return datetime.date(day.year // YEARS[period] * YEARS[period], 1, 1)
    if period in MONTHS:
        return day.replace(day=1, month=(day.month - 1) // MONTHS[period] * MONTHS[period] + 1)
    return day - datetime.timedelta(day.weekday()) if period == "week" else day


def period_name(value, period):
    """Returns the name of the day's or moment's period."""
    day, week = first_day(value, period), value.isocalendar()
    return {"day": f"{day}", "week": f"{week.year}-W{week.week:02}", "month": f"{day.year}-{day.month:02}",
            "quarter": f"{day.year}-Q{day.month // 3 + 1}", "year": f"{day.year}", "decade": f"{day.year}s",
            "century": f"{day.year}-{day.year + 99}"}[period]


def known_labels(name, value):
    """Returns the labels of a value in a hierarchy that comes with kanon, finest first."""
    if name in KNOWN:
        return KNOWN[name][value]
    if name == "weekday":
        return [value.strftime("%A"), "weekend" if value.weekday() > 4 else "Monday to Friday"]
    if name == "hour":
        return [f"{value.hour:02}:00-{value.hour:02}:59", ["night", "morning", "afternoon", "evening"][value.hour // 6]]
    five = "100+" if value >= 100 else f"{value // 5 * 5}-{value // 5 * 5 + 4}"
    stages = [(15, "child 0-14"), (25, "youth 15-24"), (65, "adult 25-64"), (999, "older 65+")]
    broad = "under 15" if value < 15 else "15-64" if value < 65 else "65+"
    return [five, next(stage for end, stage in stages if value < end), broad]
