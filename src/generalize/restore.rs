//! Restores a level from its descriptor.

use std::sync::Arc;

use super::clip::Clip;
use super::hierarchy_of_levels::ClippedText;
use super::{Argument, Descriptor, GENERALIZERS, Generalizer, Takes};
use crate::decimal::Decimal;
use crate::error::Result;
use crate::parameter::Setting;

impl Descriptor {
    /// Restores the level; `text` states whether its labels are text. `None` for the level as is,
    /// the top, the levels of hierarchy files, and for what describes no level.
    pub fn restore(&self, text: bool) -> Option<Arc<dyn Generalizer>> {
        let row = GENERALIZERS.iter().find(|row| row.doc.name == self.generalizer)?;
        let numbers = || self.argument.iter().map(|text| Decimal::parse(text)).collect::<Result<_>>().ok();
        let clip = match &self.clip {
            None => None,
            Some([low, high]) => {
                let end = |end: &Option<String>| end.as_deref().map(Decimal::parse).transpose();
                Some(Clip::new(end(low).ok()?, end(high).ok()?).ok()?)
            }
        };
        let argument = match row.takes {
            Takes::Numbers => Argument::Numbers(numbers()?),
            Takes::Lists => Argument::Lists(vec![numbers()?]),
            Takes::Words => Argument::Words(self.argument.clone()),
            Takes::Ends => {
                let [low, high] = clip?.ends();
                Argument::Ends(low, high)
            }
            Takes::Table | Takes::Nothing => return None,
        };
        let mut options = Vec::new();
        for (name, text) in &self.options {
            let option = row.options.iter().find(|option| option.name == name)?;
            options.push((name.clone(), Setting::parse(text, option.kind).ok()?));
        }
        let level = || row.with(&argument, &options).ok()?.pop();
        let level: Arc<dyn Generalizer> = match (row.takes, clip) {
            (Takes::Ends, Some(clip)) if text => Arc::new(ClippedText(clip)),
            (Takes::Ends, _) | (_, None) => level()?,
            (_, Some(clip)) => level()?.clipped(&clip).ok()?,
        };
        (level.descriptor() == *self).then_some(level)
    }
}
