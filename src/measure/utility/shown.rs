//! What every base class shows, and what that keeps of distributions.

use super::spread::Spread;
use super::{ColumnUtility, PairUtility};
use crate::class::{ClassTable, EncodedColumn, Held, ValueClasses};
use crate::decimal::ratio;
use crate::error::Result;

/// The most steps that all pairs may take.
const PAIR_STEPS: usize = 50_000_000;

/// What the base classes show.
pub(super) struct Shown<'a> {
    pub(super) table: &'a ClassTable,
    /// The rows of each base class, or of each combination of values in one.
    pub(super) rows: Vec<u64>,
    /// Whether each is kept.
    is_kept: Vec<bool>,
    pub(super) columns: Vec<ShownColumn<'a>>,
    /// What each kept class shows, by the numbers of its regions, and its rows.
    pub(super) classes: Vec<(Vec<u32>, u64)>,
    _held: Held,
}

pub(super) struct ShownColumn<'a> {
    pub(super) column: &'a EncodedColumn,
    /// The value of each base class, or combination of values.
    pub(super) code_of: Vec<u32>,
    pub(super) regions: Vec<Spread>,
    shows: Shows<'a>,
    /// In a column of numbers or dates.
    line: Option<Line>,
}

/// Where values and regions are between the least value, 0, and the greatest, 1.
struct Line {
    /// The place of each value; `None` for NULL.
    places: Vec<Option<f64>>,
    /// For each region the share of its values that are not NULL, their mean place and its square.
    moments: Vec<[f64; 3]>,
}

impl Line {
    fn new(places: Vec<Option<f64>>, regions: &[Spread]) -> Self {
        let sums = Sums::of(&places);
        Self { moments: regions.iter().map(|spread| sums.mean(spread)).collect(), places }
    }
}

/// The numbers of the regions that are shown.
pub(super) enum Shows<'a> {
    /// For each value, where a row is kept.
    OfValue(&'a [u32]),
    /// For each base class; [`NOTHING`] for a suppressed one.
    OfClass(Vec<u32>),
}

/// What a suppressed row shows.
pub(super) const NOTHING: u32 = u32::MAX;

impl<'a> Shown<'a> {
    /// Prepares the figures; `classes` are the kept ones, with the numbers of their regions and their rows.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn new(
        table: &'a ClassTable,
        is_kept: impl FnMut(usize) -> bool,
        shown: Vec<(Vec<Spread>, Shows<'a>)>,
        classes: Vec<(Vec<u32>, u64)>,
    ) -> Result<Self> {
        let count = table.columns().len();
        let mut held = Held::new(table.budget());
        let ValueClasses { base, rows, codes } = table.value_classes(&mut held)?;
        // A code and a region in each column; then the keys and the rows of a pair, or counts of
        // combinations; the classes.
        let of_class = count * size_of::<u32>() + size_of::<(Vec<u32>, u64)>();
        let of_base = count * 2 * size_of::<u32>() + 4 * size_of::<(u64, u64, u64)>();
        held.at_least(base.len() * of_base + classes.len() * of_class)?;
        let columns =
            table.columns().iter().zip(shown).zip(codes).map(|((column, (regions, shows)), code_of)| {
                let shows = match shows {
                    Shows::OfClass(regions) => {
                        Shows::OfClass(base.iter().map(|class| regions[*class as usize]).collect())
                    }
                    labels => labels,
                };
                let line = column.number_line()?.map(|line| Line::new(line.places().to_vec(), &regions));
                Ok(ShownColumn { column, code_of, regions, shows, line })
            });
        let columns = columns.collect::<Result<_>>()?;
        let of_base: Vec<bool> = (0..table.base().len()).map(is_kept).collect();
        let is_kept = base.iter().map(|class| of_base[*class as usize]).collect();
        Ok(Self { table, rows, is_kept, columns, classes, _held: held })
    }

    /// Returns what is kept of each column, and of each pair of columns.
    pub(super) fn columns_and_pairs(&self) -> (Vec<ColumnUtility>, Vec<PairUtility>) {
        let columns = self.columns.iter().enumerate().map(|(at, column)| {
            let (p, q) = (self.input(column), self.released(at));
            let on_line = column
                .line
                .as_ref()
                .and_then(|line| Some((among_values(&line.places, &p)?, among_values(&line.places, &q)?)));
            ColumnUtility {
                column: column.column.name().to_owned(),
                information_kept: rounded(self.information_kept(&[column])),
                total_variation: rounded(self.total_variation(&p, &q)),
                wasserstein: on_line.as_ref().map(|(p, q)| rounded(wasserstein(p, q))),
                mean_change: self.mean_change(at).map(rounded),
                squared_error: self.squared_error(at).map(rounded),
            }
        });
        let columns: Vec<ColumnUtility> = columns.collect();
        let count = self.columns.len();
        let mut pairs = Vec::new();
        if (count * count / 2).saturating_mul(self.rows.len()) <= PAIR_STEPS {
            for (at, one) in self.columns.iter().enumerate() {
                for (next, other) in self.columns.iter().enumerate().skip(at + 1) {
                    pairs.push(PairUtility {
                        columns: [one.column.name().to_owned(), other.column.name().to_owned()],
                        information_kept: rounded(self.information_kept(&[one, other])),
                        correlation_change: self.correlation_change(at, next).map(rounded),
                    });
                }
            }
        }
        (columns, pairs)
    }

    /// Returns the mean and the variance of a column of numbers or dates over the rows of the input;
    /// `None` without values and for a constant.
    fn moments(&self, column: &ShownColumn<'_>) -> Option<(f64, f64)> {
        let line = column.line.as_ref()?;
        let rows = || {
            let places = column.code_of.iter().map(|code| line.places[*code as usize]);
            places.zip(&self.rows).filter_map(|(place, rows)| Some((place?, ratio((*rows).into(), 1))))
        };
        let all: f64 = rows().map(|(_, rows)| rows).sum();
        let mean = rows().map(|(place, rows)| place * rows).sum::<f64>() / all;
        let variance = rows().map(|(place, rows)| (place - mean).powi(2) * rows).sum::<f64>() / all;
        (all > 0.0 && variance > 1e-12).then_some((mean, variance))
    }

    /// Returns the change of the mean in standard deviations of the input.
    fn mean_change(&self, at: usize) -> Option<f64> {
        let column = &self.columns[at];
        let (mean, variance) = self.moments(column)?;
        let line = column.line.as_ref()?;
        let (mut rows, mut sum) = (0.0, 0.0);
        for (regions, n) in &self.classes {
            let [present, place, _] = line.moments[regions[at] as usize];
            (rows, sum) = (rows + ratio((*n).into(), 1) * present, sum + ratio((*n).into(), 1) * place);
        }
        (rows > 1e-12).then(|| (sum / rows - mean) / variance.sqrt())
    }

    /// Returns the mean squared difference between the value of a kept row and what it is read as, in
    /// variances of the input; rows that lack either are left out.
    fn squared_error(&self, at: usize) -> Option<f64> {
        let column = &self.columns[at];
        let (_, variance) = self.moments(column)?;
        let line = column.line.as_ref()?;
        let (mut rows, mut sum) = (0.0, 0.0);
        for (class, n) in self.rows.iter().enumerate().filter(|(class, _)| self.is_kept[*class]) {
            let code = column.code_of[class] as usize;
            let region = match &column.shows {
                Shows::OfValue(labels) => labels[code],
                Shows::OfClass(regions) => regions[class],
            };
            let (Some(place), [present, mean, square]) = (line.places[code], line.moments[region as usize])
            else {
                continue;
            };
            if present > 0.0 {
                let n = ratio((*n).into(), 1);
                rows += n;
                sum += n * (place * place - 2.0 * place * mean / present + square / present);
            }
        }
        (rows > 0.0).then(|| (sum / rows / variance).max(0.0))
    }

    /// Returns the distance of two distributions; 1 if no row is kept.
    fn total_variation(&self, p: &[f64], q: &[f64]) -> f64 {
        match self.classes.is_empty() {
            true => 1.0,
            false => p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0,
        }
    }

    /// Returns the share of the rows that have each value.
    fn input(&self, column: &ShownColumn<'_>) -> Vec<f64> {
        let mut rows = vec![0u64; column.column.own_values()];
        column.code_of.iter().zip(&self.rows).for_each(|(code, n)| rows[*code as usize] += n);
        rows.into_iter().map(|rows| ratio(rows.into(), self.table.total_rows().into())).collect()
    }

    /// Returns the share of the kept rows that are read as having each value.
    fn released(&self, at: usize) -> Vec<f64> {
        let column = &self.columns[at];
        let mut rows = vec![0u64; column.regions.len()];
        self.classes.iter().for_each(|(regions, n)| rows[regions[at] as usize] += n);
        let all = self.classes.iter().map(|(_, rows)| rows).sum::<u64>().max(1);
        // What begins and what ends at each code.
        let mut steps = vec![0.0; column.column.own_values() + 1];
        for (region, rows) in column.regions.iter().zip(rows).filter(|(_, rows)| *rows > 0) {
            let each = ratio(rows.into(), u128::from(all) * region.count() as u128);
            match region {
                Spread::Between(first, last) => {
                    steps[*first as usize] += each;
                    steps[*last as usize + 1] -= each;
                }
                Spread::At(code, _) => {
                    steps[*code as usize] += each;
                    steps[*code as usize + 1] -= each;
                }
                Spread::Each(codes) => codes.iter().for_each(|code| {
                    steps[*code as usize] += each;
                    steps[*code as usize + 1] -= each;
                }),
            }
        }
        let mut sum = 0.0;
        steps.pop();
        let level = |step: &f64| {
            sum += step;
            sum
        };
        steps.iter().map(level).collect()
    }

    /// Returns the share of the information of columns together.
    fn information_kept(&self, columns: &[&ShownColumn<'_>]) -> f64 {
        let (whole, lost) = self.counted(columns).unwrap_or_else(|| self.sorted(columns));
        let least = 1e-12 * ratio(self.table.total_rows().into(), 1);
        if whole <= least { 1.0 } else { (1.0 - lost / whole).clamp(0.0, 1.0) }
    }

    /// Returns H(X) and H(X | R) in bits times rows, from counts of all combinations of values;
    /// `None` if there are too many, or regions are not those of values.
    fn counted(&self, columns: &[&ShownColumn<'_>]) -> Option<(f64, f64)> {
        let labels = columns.iter().map(|column| match column.shows {
            Shows::OfValue(labels) => Some((labels, column.regions.len())),
            Shows::OfClass(_) => None,
        });
        let labels = labels.collect::<Option<Vec<_>>>()?;
        let values =
            columns.iter().try_fold(1usize, |all, column| all.checked_mul(column.column.own_values()))?;
        let regions = labels.iter().try_fold(1usize, |all, (_, regions)| all.checked_mul(*regions))?;
        if values.max(regions) > 4 * self.rows.len() + 1024 {
            return None;
        }
        let (mut kept, mut suppressed) = (vec![0u64; values], vec![0u64; values]);
        let mut in_region = vec![0u64; regions];
        for (class, (rows, is_kept)) in self.rows.iter().zip(&self.is_kept).enumerate() {
            let (mut value, mut region) = (0, 0);
            for (column, (labels, regions)) in columns.iter().zip(&labels) {
                let code = column.code_of[class] as usize;
                value = value * column.column.own_values() + code;
                region = region * regions + labels[code] as usize;
            }
            match is_kept {
                true => {
                    kept[value] += rows;
                    in_region[region] += rows;
                }
                false => suppressed[value] += rows,
            }
        }
        let sum = |counts: &[u64]| counts.iter().map(|rows| log_of(*rows)).sum::<f64>();
        let lost = sum(&in_region) - sum(&kept) + bits(suppressed.iter().copied());
        let all = kept.iter().zip(&suppressed).map(|(kept, suppressed)| kept + suppressed);
        Some((bits(all), lost))
    }

    /// Returns the same from sorted base classes.
    fn sorted(&self, columns: &[&ShownColumn<'_>]) -> (f64, f64) {
        let region = |column: &ShownColumn<'_>, class: usize| match &column.shows {
            Shows::OfClass(regions) => regions[class],
            Shows::OfValue(_) if !self.is_kept[class] => NOTHING,
            Shows::OfValue(labels) => labels[column.code_of[class] as usize],
        };
        let key = |of: &dyn Fn(&ShownColumn<'_>) -> u32| {
            columns.iter().fold(0u64, |key, column| key << 32 | u64::from(of(column)))
        };
        let classes = self.rows.iter().enumerate().map(|(class, rows)| {
            (key(&|column| region(column, class)), key(&|column| column.code_of[class]), *rows)
        });
        let mut classes: Vec<(u64, u64, u64)> = classes.collect();
        classes.sort_unstable();
        let of_region = |region: &[(u64, u64, u64)]| bits(region.chunk_by(|a, b| a.1 == b.1).map(rows_of));
        let lost = classes.chunk_by(|a, b| a.0 == b.0).map(of_region).sum();
        classes.sort_unstable_by_key(|(_, value, _)| *value);
        (of_region(&classes), lost)
    }

    /// Returns the change of the correlation of two columns of numbers or dates.
    fn correlation_change(&self, one: usize, other: usize) -> Option<f64> {
        let [a, b] = [&self.columns[one], &self.columns[other]];
        let (x, y) = (a.line.as_ref()?, b.line.as_ref()?);
        let (mut input, mut released) = (Joint::default(), Joint::default());
        for (class, rows) in self.rows.iter().enumerate() {
            let place = |line: &Line, column: &ShownColumn<'_>| line.places[column.code_of[class] as usize];
            if let (Some(x), Some(y)) = (place(x, a), place(y, b)) {
                input.add(ratio((*rows).into(), 1), [1.0, x, x * x], [1.0, y, y * y]);
            }
        }
        for (regions, rows) in &self.classes {
            let [x, y] = [x.moments[regions[one] as usize], y.moments[regions[other] as usize]];
            released.add(ratio((*rows).into(), 1), x, y);
        }
        Some(released.correlation()? - input.correlation()?)
    }
}

/// The count, the sum and the sum of squares of the places below each code, NULL aside.
struct Sums(Vec<[f64; 3]>);

impl Sums {
    fn of(places: &[Option<f64>]) -> Self {
        let mut sums = vec![[0.0; 3]];
        let mut sum = [0.0; 3];
        for place in places {
            if let Some(place) = place {
                sum = [sum[0] + 1.0, sum[1] + place, sum[2] + place * place];
            }
            sums.push(sum);
        }
        Self(sums)
    }

    /// Returns the means over the values of a region: the share that is not NULL, the place and its square.
    fn mean(&self, spread: &Spread) -> [f64; 3] {
        let between = |first: u32, last: u32| {
            let (below, up_to) = (self.0[first as usize], self.0[last as usize + 1]);
            [up_to[0] - below[0], up_to[1] - below[1], up_to[2] - below[2]]
        };
        let sum = match spread {
            Spread::At(_, place) => place.map_or([0.0; 3], |place| [1.0, place, place * place]),
            Spread::Between(first, last) => between(*first, *last),
            Spread::Each(codes) => codes.iter().fold([0.0; 3], |sum, code| {
                let one = between(*code, *code);
                [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]]
            }),
        };
        sum.map(|sum| sum / ratio(spread.count() as u128, 1))
    }
}

/// The sums from which a correlation is computed.
#[derive(Default)]
struct Joint {
    rows: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Joint {
    /// Adds rows whose columns are independent, each with the share that is not NULL, the place and
    /// its square.
    fn add(&mut self, rows: f64, [x0, x1, x2]: [f64; 3], [y0, y1, y2]: [f64; 3]) {
        self.rows += rows * x0 * y0;
        self.x += rows * x1 * y0;
        self.y += rows * x0 * y1;
        self.xx += rows * x2 * y0;
        self.yy += rows * x0 * y2;
        self.xy += rows * x1 * y1;
    }

    /// Returns the correlation; `None` without rows or for a constant.
    fn correlation(&self) -> Option<f64> {
        let mean = |sum: f64| sum / self.rows;
        let (x, y) = (mean(self.x), mean(self.y));
        let (xx, yy) = (mean(self.xx) - x * x, mean(self.yy) - y * y);
        let is_spread = self.rows > 0.0 && xx > 1e-12 && yy > 1e-12;
        is_spread.then(|| ((mean(self.xy) - x * y) / (xx * yy).sqrt()).clamp(-1.0, 1.0))
    }
}

/// Returns the rows of base classes.
fn rows_of(classes: &[(u64, u64, u64)]) -> u64 {
    classes.iter().map(|(_, _, rows)| rows).sum()
}

/// Returns a figure with six decimals, so that a record reads as it was written.
pub(super) fn rounded(figure: f64) -> f64 {
    (figure * 1e6).round() / 1e6
}

/// Returns `n log2(n)`.
fn log_of(rows: u64) -> f64 {
    if rows < 2 { 0.0 } else { ratio(rows.into(), 1) * ratio(rows.into(), 1).log2() }
}

/// Returns the entropy of values with these rows, in bits times rows.
fn bits(values: impl Iterator<Item = u64>) -> f64 {
    let (mut all, mut logs) = (0, 0.0);
    for rows in values {
        all += rows;
        logs += log_of(rows);
    }
    log_of(all) - logs
}

/// Returns the places of the values that are not NULL, with their shares scaled to sum to 1; `None`
/// without such values.
fn among_values(places: &[Option<f64>], shares: &[f64]) -> Option<Vec<(f64, f64)>> {
    let values = places.iter().zip(shares).filter_map(|(place, share)| Some(((*place)?, *share)));
    let values: Vec<(f64, f64)> = values.collect();
    let all: f64 = values.iter().map(|(_, share)| share).sum();
    (all > 1e-12).then(|| values.into_iter().map(|(place, share)| (place, share / all)).collect())
}

/// The share of the rows that may lie beyond an end of the span: a typing error does not stretch it.
const BEYOND: f64 = 0.001 + 1e-12;

/// Returns the area between the distribution functions of an input p and a release q, as a share of
/// the span of p. Values beyond the span count as its end.
fn wasserstein(p: &[(f64, f64)], q: &[(f64, f64)]) -> f64 {
    let (low, high) = span(p);
    let inside = |place: f64| place.max(low).min(high);
    let (mut below, mut area) = (0.0, 0.0);
    for ((one, next), q) in p.iter().zip(p.iter().skip(1)).zip(q) {
        below += one.1 - q.1;
        area += f64::abs(below) * (inside(next.0) - inside(one.0));
    }
    if high > low { area / (high - low) } else { 0.0 }
}

/// Returns the places between which all but 0.1 % of the rows at either end lie, or all rows if
/// these are at one place.
fn span(values: &[(f64, f64)]) -> (f64, f64) {
    let (low, high) = (end_of(values.iter()), end_of(values.iter().rev()));
    match (values.first(), values.last()) {
        (Some(first), Some(last)) if high <= low => (first.0, last.0),
        _ => (low, high),
    }
}

/// Returns the first place at which more than 0.1 % of the rows are reached.
fn end_of<'a>(mut values: impl Iterator<Item = &'a (f64, f64)>) -> f64 {
    let mut reached = 0.0;
    let is_inside = |value: &&(f64, f64)| {
        reached += value.1;
        reached > BEYOND
    };
    values.find(is_inside).map_or(0.0, |value| value.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_does_not_stretch_the_span() {
        // Two thousand rows, one of them a hundred times as far away as the others.
        let (p, q) =
            ([(0.0, 0.5), (0.01, 0.4995), (1.0, 0.0005)], [(0.0, 0.25), (0.01, 0.7495), (1.0, 0.0005)]);
        assert_eq!(span(&p), (0.0, 0.01));
        assert!((wasserstein(&p, &q) - 0.25).abs() < 1e-9);
        let mirrored = |values: [(f64, f64); 3]| values.map(|(place, share)| (1.0 - place, share));
        let [mut p, mut q] = [p, q].map(mirrored);
        p.reverse();
        q.reverse();
        assert!((wasserstein(&p, &q) - 0.25).abs() < 1e-9);
        // A row more at the far place is no error any more; 1 of 1,000 is.
        assert_eq!(span(&[(0.0, 0.5), (0.01, 0.4985), (1.0, 0.0015)]), (0.0, 1.0));
        assert_eq!(span(&[(0.0, 0.001), (0.5, 0.499), (1.0, 0.5)]), (0.5, 1.0));
        // Where nearly all rows are at one place, the others make the span.
        assert_eq!(span(&[(0.0, 0.0005), (0.5, 0.999), (1.0, 0.0005)]), (0.0, 1.0));
        assert_eq!((span(&[(0.0, 1.0)]), wasserstein(&[(0.0, 1.0)], &[(0.0, 1.0)])), ((0.0, 0.0), 0.0));
    }
}
