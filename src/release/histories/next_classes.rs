//! What the classes of the next release show: those of earlier releases, and new ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringViewArray, UInt32Array};
use arrow::compute::{cast, take};
use hashbrown::HashMap;

use crate::class::{Budget, ClassTable, EncodedColumn, EvaluatedPartition, Held, ShownColumn};
use crate::engine::{Context, Run};
use crate::error::{Error, ErrorKind, Result};
use crate::generalize::{Generalizer, RegionLabel, text_forms};
use crate::input::Loaded;
use crate::measure::granularity::share;
use crate::method::{self, Problem, Recoding};
use crate::policy::Policy;
use crate::release::histories::chain::Chain;
use crate::release::histories::next_release::DOING;
use crate::release::kind::levels::labels_under;
use crate::release::kind::regions::earlier::Column as LabelledColumn;
use crate::release::kind::regions::label_kept;
use crate::release::search::{problem, profile_classes};
use crate::verify::histories::ShownRows;

/// What classes show, in the order of the released quasi-identifiers.
pub(super) type Labels = Vec<Option<String>>;

/// Returns of each release before the number of each class.
///
/// # Errors
/// An internal error if a class has no label of a quasi-identifier.
pub(super) fn earlier_classes(
    policy: &Policy,
    shown: &[ShownRows<'_>],
    numbered: &mut Numbered,
) -> Result<Vec<Vec<u32>>> {
    let names: Vec<&str> = policy.released_quasi().map(|at| policy.quasi[at].name.as_str()).collect();
    let mut of_release = Vec::with_capacity(shown.len());
    for release in shown {
        let (quasi, classes) = release.classes.labels();
        let place = |name: &&str| quasi.iter().position(|known| known == name);
        let places: Option<Vec<usize>> = names.iter().map(place).collect();
        let places = places.ok_or_else(|| Error::internal("next release: a class without a label"))?;
        let number =
            |class: &Labels| numbered.number(places.iter().map(|place| class[*place].clone()).collect());
        of_release.push(classes.iter().map(number).collect());
    }
    Ok(of_release)
}

/// The classes of rows under the levels of the releases before.
pub(super) struct LevelClasses {
    /// The level of each quasi-identifier, in policy order.
    pub(super) levels: Vec<usize>,
    /// Its generalizers, whose labels are as wide as in the releases before.
    pub(super) generalizers: Vec<Arc<dyn Generalizer>>,
    /// For each quasi-identifier, in policy order, its labels.
    labels: Vec<ArrayRef>,
    /// Of each base class its labels, by their places.
    codes: Vec<Box<[u32]>>,
    /// The class of each base class.
    pub(super) of_base: Vec<u32>,
}

impl LevelClasses {
    /// Finds the class of each base class; `numbered` has the classes of earlier releases, and new ones are added.
    ///
    /// # Errors
    /// An unmet error if the releases before are of other levels, an internal one if labels cannot be made.
    pub(super) fn of(
        policy: &Policy,
        classes: &ClassTable,
        chain: &Chain,
        numbered: &mut Numbered,
    ) -> Result<Self> {
        let (mut levels, mut generalizers, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for (at, quasi) in policy.quasi.iter().enumerate() {
            let other = || Error::unmet(format!("the releases before show no level of `{}`", quasi.name));
            let level =
                chain.level(&quasi.name).filter(|level| quasi.levels.contains(level)).ok_or_else(other)?;
            let column = &classes.columns()[at];
            let place = policy.released_quasi().position(|quasi| quasi == at);
            let shown = numbered.labels.iter().map(|class| class[place.unwrap_or_default()].clone());
            let shown: ArrayRef = Arc::new(shown.collect::<StringViewArray>());
            let shown = cast(&shown, column.level(level).labels().data_type()).context(DOING)?;
            let (generalizer, of_column) = labels_under(column, level, &shown)?;
            levels.push(level);
            generalizers.push(generalizer);
            labels.push(of_column);
        }
        let texts = labels.iter().map(text_forms).collect::<Result<Vec<_>>>()?;
        let (mut codes, mut of_base) = (Vec::new(), Vec::new());
        for base in 0..classes.base().len() {
            let code = |(at, level): (usize, &usize)| {
                let value = classes.code(classes.base(), base, at);
                Ok(classes.columns()[at].map(0, *level)?[value as usize])
            };
            let of_row: Box<[u32]> = levels.iter().enumerate().map(code).collect::<Result<_>>()?;
            let text = |at: usize| {
                let (texts, code) = (&texts[at], of_row[at] as usize);
                texts.is_valid(code).then(|| texts.value(code).to_owned())
            };
            of_base.push(numbered.number(policy.released_quasi().map(text).collect()));
            codes.push(of_row);
        }
        Ok(Self { levels, generalizers, labels, codes, of_base })
    }

    /// Returns what these classes show, in policy order; each has a row of the input.
    ///
    /// # Errors
    /// An unmet error if labels would have another width than before.
    pub(super) fn labels_of(&self, classes: &ClassTable, used: &[u32]) -> Result<Vec<ArrayRef>> {
        let bases = self.bases_of(used)?;
        let of_column = |(at, labels): (usize, &ArrayRef)| {
            let codes: UInt32Array = bases.iter().map(|base| self.codes[*base][at]).collect();
            let shown = take(labels, &codes, None).context(DOING)?;
            let column = &classes.columns()[at];
            let (_, alone) = labels_under(column, self.levels[at], &shown)?;
            if take(&alone, &codes, None).context(DOING)?.to_data() != shown.to_data() {
                return Err(Error::unmet(format!(
                    "the labels of `{}` would have another width than in the releases before; nothing was published",
                    column.name()
                )));
            }
            Ok(shown)
        };
        self.labels.iter().enumerate().map(of_column).collect()
    }

    /// Returns a base class of each of these classes.
    fn bases_of(&self, used: &[u32]) -> Result<Vec<usize>> {
        let first: HashMap<u32, usize> = self.of_base.iter().copied().zip(0..).collect();
        let bases: Option<Vec<usize>> = used.iter().map(|class| first.get(class).copied()).collect();
        bases.ok_or_else(|| Error::internal("next release: a class without a row"))
    }

    /// Returns the loss of each quasi-identifier, in policy order, if so many rows of each class are shown.
    ///
    /// # Errors
    /// An internal error for a class without a row.
    pub(super) fn costs(&self, classes: &ClassTable, shown: &[u64]) -> Result<Vec<f64>> {
        let used: Vec<u32> =
            (0u32..).zip(shown).filter(|(_, rows)| **rows > 0).map(|(class, _)| class).collect();
        let bases = self.bases_of(&used)?;
        let hidden = u128::from(classes.total_rows() - shown.iter().sum::<u64>());
        let cost = |(at, column): (usize, &EncodedColumn)| {
            let leaves = column.level(self.levels[at]).leaves();
            let of_class = |(class, base): (&u32, &usize)| {
                u128::from(shown[*class as usize]) * u128::from(leaves[self.codes[*base][at] as usize])
            };
            let covered: u128 = used.iter().zip(&bases).map(of_class).sum();
            share(covered + hidden * u128::from(column.leaves()), classes.total_rows(), column.leaves())
        };
        Ok(classes.columns().iter().enumerate().map(cost).collect())
    }
}

/// Memory ends long before numbers do.
pub(super) fn number_of(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Classes by what they show.
#[derive(Default)]
pub(super) struct Numbered {
    pub(super) labels: Vec<Labels>,
    numbers: HashMap<Labels, u32>,
}

impl Numbered {
    /// Returns the number of a class; a new one is the next.
    pub(super) fn number(&mut self, class: Labels) -> u32 {
        let (labels, next) = (&mut self.labels, number_of(self.numbers.len()));
        *self.numbers.entry(class).or_insert_with_key(|class| {
            labels.push(class.clone());
            next
        })
    }
}

/// What classes show in each column, as the place among its labels.
pub(super) struct LabelsOfColumns {
    labels: Vec<Vec<(Option<String>, RegionLabel)>>,
    by_class: Vec<Vec<u32>>,
    /// The place of each among the columns of the class table.
    places: Vec<usize>,
}

impl LabelsOfColumns {
    /// # Errors
    /// An unmet error for a label that is none.
    pub(super) fn of(policy: &Policy, classes: &ClassTable, labels: &[Labels]) -> Result<Self> {
        let places: Vec<usize> = policy.released_quasi().collect();
        let (mut all, mut by_class) = (Vec::new(), Vec::new());
        for (position, at) in places.iter().enumerate() {
            let hierarchy = classes.columns()[*at].hierarchy();
            let mut numbers: HashMap<&Option<String>, u32> = HashMap::new();
            let (mut of_column, mut of_class) = (Vec::new(), Vec::with_capacity(labels.len()));
            for class in labels {
                let text = &class[position];
                let next = number_of(of_column.len());
                let number = *numbers.entry(text).or_insert(next);
                if number == next {
                    let label = RegionLabel::parse_canonical(
                        text.as_deref(),
                        hierarchy.input_type(),
                        hierarchy.has_intervals(),
                    );
                    let label = label
                        .ok_or_else(|| Error::unmet("the private record is damaged: a label is none"))?;
                    of_column.push((text.clone(), label));
                }
                of_class.push(number);
            }
            all.push(of_column);
            by_class.push(of_class);
        }
        Ok(Self { labels: all, by_class, places })
    }

    /// Returns the columns, with their places in the class table.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn columns<'a>(
        &'a self,
        run: &Run,
        classes: &'a ClassTable,
        budget: &Arc<dyn Budget>,
    ) -> Result<Vec<(usize, LabelledColumn<'a>)>> {
        let columns =
            self.places.iter().zip(self.labels.iter().zip(&self.by_class)).map(|(at, (labels, by_class))| {
                let mut held = Held::new(budget);
                let column =
                    LabelledColumn::new(&classes.columns()[*at], labels, by_class, &run.stop, &mut held)?;
                Ok((*at, column))
            });
        columns.collect()
    }
}

/// Labels without ends at the least or the greatest value that is shown.
pub(super) struct OpenEnds<'a> {
    columns: Vec<(&'a EncodedColumn, ShownColumn<'a>)>,
}

impl<'a> OpenEnds<'a> {
    /// Reads the values of the base classes with a row that is shown.
    ///
    /// # Errors
    /// An internal error if values cannot be read.
    pub(super) fn of(policy: &Policy, classes: &'a ClassTable, shown: &BTreeSet<usize>) -> Result<Self> {
        let column = |at: usize| {
            let codes = shown.iter().map(|base| classes.code(classes.base(), *base, at));
            let column = &classes.columns()[at];
            Ok((column, ShownColumn::of_codes(column, codes, policy.spec.output.ends())?))
        };
        Ok(Self { columns: policy.released_quasi().map(column).collect::<Result<_>>()? })
    }

    /// Opens the labels of a class.
    ///
    /// # Errors
    /// An internal error for a label that is none.
    pub(super) fn open(&self, labels: &Labels) -> Result<Labels> {
        let open = |(text, (column, shown)): (&Option<String>, &(&EncodedColumn, ShownColumn<'_>))| {
            let hierarchy = column.hierarchy();
            if !hierarchy.has_intervals() {
                return Ok(text.clone());
            }
            let label = RegionLabel::parse_canonical(text.as_deref(), hierarchy.input_type(), true);
            let label = label.ok_or_else(|| Error::internal("next release: a label is none"))?;
            Ok(shown.open(label).write(hierarchy.input_type()))
        };
        labels.iter().zip(&self.columns).map(open).collect()
    }
}

/// Finds classes for new rows, which are all of this table, and numbers them. `all` are the base classes of the whole input; returned is
/// the class of each that has one.
///
/// # Errors
/// A data error when memory runs out, an interruption.
pub(super) async fn new_classes(
    run: &Run,
    loaded: &Loaded,
    all: &ClassTable,
    numbered: &mut Numbered,
) -> Result<HashMap<usize, u32>> {
    let policy = &loaded.policy;
    let found = async {
        let (classes, policy) = (profile_classes(run, loaded).await?, Arc::clone(policy));
        run.on_own_thread(move |run| {
            // All may wait: the limit is for the whole input, and is checked there.
            let limit = classes.total_individuals();
            let problem = Problem { limit, ..problem(run, &policy, &classes, &*run.progress) };
            let (_, outcome) = method::search(&policy.spec.method, &problem, &policy.options(1))?;
            Ok((classes, outcome))
        })
        .await
    };
    let (classes, outcome) = match found.await {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Unmet => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let Some(best) = outcome.best.into_iter().next() else { return Ok(HashMap::new()) };
    let Recoding::Classes(released) = best.recoding else {
        return Err(Error::internal("next release: the method found no regions"));
    };
    let merged = classes.merge(&released)?;
    let evaluated = EvaluatedPartition::new(&classes, &released, &merged, &policy.requirements)?;
    if evaluated.kept().next().is_none() {
        return Ok(HashMap::new());
    }
    let (_, kept) = label_kept(policy, &evaluated)?;
    let texts: Vec<&StringArray> = kept.labels.iter().filter_map(|labels| labels.as_string_opt()).collect();
    let text = |at: usize, class: usize| -> Option<String> {
        texts.get(at).filter(|texts| texts.is_valid(class)).map(|texts| texts.value(class).to_owned())
    };
    let mut number =
        |class: usize| numbered.number(policy.released_quasi().map(|at| text(at, class)).collect());
    let number: Vec<u32> = (0..kept.rows.len()).map(&mut number).collect();
    // The codes of the whole input as those of the new rows, by the labels of level 0.
    let codes = classes.columns().iter().zip(all.columns()).map(|(new, all)| {
        let (new, all) = (text_forms(new.level(0).labels())?, text_forms(all.level(0).labels())?);
        let known: HashMap<Option<&str>, u32> = new.iter().zip(0..).collect();
        Ok(all.iter().map(|text| known.get(&text).copied()).collect())
    });
    let codes: Vec<Vec<Option<u32>>> = codes.collect::<Result<_>>()?;
    let class_of: HashMap<Box<[u32]>, Option<u64>> = kept.keys.classes.into_iter().collect();
    let of_base = (0..all.base().len()).filter_map(|base| {
        let code = |(at, codes): (usize, &Vec<Option<u32>>)| codes[all.code(all.base(), base, at) as usize];
        let key: Option<Box<[u32]>> = codes.iter().enumerate().map(code).collect();
        let class = usize::try_from((*class_of.get(&key?)?)?).ok()?;
        Some((base, *number.get(class)?))
    });
    Ok(of_base.collect())
}
