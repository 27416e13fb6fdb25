//! Which base classes are near one another: those at neighbouring places when all are sorted by
//! their columns, each time beginning with another column.
//!
//! A comparison of all pairs would take a time that grows with the square of the base classes.

use crate::class::{ClassTable, Held};
use crate::error::Result;

/// The most orders in which base classes are sorted.
const MOST_ORDERS: usize = 24;

/// The places that are near on each side in an order.
pub(super) const NEAR: usize = 4;

/// The base classes in several orders.
pub(super) struct Orders {
    orders: Vec<Order>,
    _held: Held,
}

/// One order of the base classes.
struct Order {
    sorted: Vec<u32>,
    place_of: Vec<u32>,
}

impl Orders {
    /// Sorts the base classes of a table by its columns, beginning with each of them, forwards and backwards.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn new(table: &ClassTable) -> Result<Self> {
        let (classes, columns) = (table.base().len(), table.columns().len());
        let count = (2 * columns).min(MOST_ORDERS);
        let mut held = Held::new(table.budget());
        held.at_least(classes * (count * 2 * size_of::<u32>() + size_of::<(u128, u32)>()))?;
        let forwards = (0..columns).map(|first| (0..columns).map(|at| (first + at) % columns).collect());
        let backwards =
            (0..columns).map(|first| (0..columns).map(|at| (first + columns - at) % columns).collect());
        let orders = forwards.chain(backwards).take(count).map(|order: Vec<usize>| Order::by(table, &order));
        Ok(Self { orders: orders.collect(), _held: held })
    }

    /// Returns the base classes of each order.
    pub(super) fn sorted(&self) -> impl Iterator<Item = &[u32]> {
        self.orders.iter().map(|order| order.sorted.as_slice())
    }

    /// Returns the base classes at most `reach` places away in any order, on each side the nearest
    /// first; some several times.
    pub(super) fn around(&self, class: u32, reach: usize) -> impl Iterator<Item = [&[u32]; 2]> {
        self.orders.iter().map(move |order| {
            let at = order.place_of[class as usize] as usize;
            let (before, after) = (&order.sorted[..at], &order.sorted[at + 1..]);
            [&before[before.len().saturating_sub(reach)..], &after[..reach.min(after.len())]]
        })
    }
}

impl Order {
    fn by(table: &ClassTable, columns: &[usize]) -> Self {
        let all = (0u32..).take(table.base().len()).collect();
        let code = |class: u32, column: usize| table.code(table.base(), class as usize, column);
        let sorted = sorted_by(table, all, columns, code);
        let mut place_of = vec![0; sorted.len()];
        (0u32..).zip(&sorted).for_each(|(place, class)| place_of[*class as usize] = place);
        Self { sorted, place_of }
    }
}

/// Returns base classes in the order of codes, which are at most those of the columns' values: by
/// the first of these columns, then by the next one, at last by their numbers.
pub(super) fn sorted_by(
    table: &ClassTable,
    mut classes: Vec<u32>,
    columns: &[usize],
    code: impl Fn(u32, usize) -> u32,
) -> Vec<u32> {
    let bits = |column: &usize| usize::BITS - table.columns()[*column].distinct().leading_zeros();
    if columns.iter().map(bits).sum::<u32>() <= u128::BITS {
        let key = |class| columns.iter().fold(0, |key, at| key << bits(at) | u128::from(code(class, *at)));
        let mut keyed: Vec<(u128, u32)> = classes.into_iter().map(|class| (key(class), class)).collect();
        keyed.sort_unstable();
        return keyed.into_iter().map(|(_, class)| class).collect();
    }
    let code = &code;
    let key = |class: u32| columns.iter().map(move |at| code(class, *at));
    classes.sort_unstable_by(|a, b| key(*a).cmp(key(*b)).then(a.cmp(b)));
    classes
}

/// The base classes that are left in each order.
pub(super) struct Remaining<'a> {
    orders: &'a Orders,
    /// For each order the places before and after each place, those of taken base classes left out;
    /// place 0 and the one after the last are ends.
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
    _held: Held,
}

impl<'a> Remaining<'a> {
    /// Begins with all base classes.
    ///
    /// # Errors
    /// A data error when memory runs out.
    pub(super) fn all(table: &ClassTable, orders: &'a Orders) -> Result<Self> {
        let places = table.base().len() + 2;
        let mut held = Held::new(table.budget());
        held.at_least(orders.orders.len() * places * 2 * size_of::<u32>())?;
        let before: Vec<u32> = (0u32..).take(places).map(|place| place.saturating_sub(1)).collect();
        let after: Vec<u32> = (1u32..).take(places).collect();
        let count = orders.orders.len();
        Ok(Self { orders, before: vec![before; count], after: vec![after; count], _held: held })
    }

    /// Takes a base class.
    pub(super) fn take(&mut self, class: u32) {
        for ((order, before), after) in self.orders.orders.iter().zip(&mut self.before).zip(&mut self.after) {
            let place = order.place_of[class as usize] as usize + 1;
            after[before[place] as usize] = after[place];
            before[after[place] as usize] = before[place];
        }
    }

    /// Calls `see` with the base classes that are left near one that was taken, in each order; some
    /// several times.
    pub(super) fn near(&self, class: u32, mut see: impl FnMut(u32)) {
        for ((order, before), after) in self.orders.orders.iter().zip(&self.before).zip(&self.after) {
            let place = order.place_of[class as usize] + 1;
            for next in [before, after] {
                let mut at = place;
                for _ in 0..NEAR {
                    at = next[at as usize];
                    // The ends hold no base class.
                    let Some(class) = (at as usize).checked_sub(1).and_then(|at| order.sorted.get(at)) else {
                        break;
                    };
                    see(*class);
                }
            }
        }
    }
}
