//! Restores a level from its descriptor.

use std::sync::Arc;

use super::clip::{self, Clip};
use super::hierarchy_of_levels::ClippedText;
use super::{Descriptor, Generalizer, all};
use crate::decimal::Decimal;
use crate::parameter::Setting;

impl Descriptor {
    /// Restores the level; `text` states whether its labels are text. `None` for the level as is,
    /// the top, the levels of hierarchy files, and for what describes no level.
    pub fn restore(&self, text: bool) -> Option<Arc<dyn Generalizer>> {
        let row = all().find(|row| row.doc.name == self.generalizer)?;
        let clip = match &self.clip {
            None => None,
            Some([low, high]) => {
                let end = |end: &Option<String>| end.as_deref().map(Decimal::parse).transpose();
                Some(Clip::new(end(low).ok()?, end(high).ok()?).ok()?)
            }
        };
        let level: Arc<dyn Generalizer> = if self.generalizer == clip::ROW.doc.name {
            if text { Arc::new(ClippedText(clip?)) } else { Arc::new(clip?) }
        } else {
            let setting = |name: &str, text: &str| {
                let parameter = row.parameters.iter().find(|parameter| parameter.name == name)?;
                Some((name.to_owned(), Setting::parse(text, parameter.kind).ok()?))
            };
            let first = setting(row.parameters.first()?.name, &self.argument.join(","));
            let options = self.options.iter().map(|(name, text)| setting(name, text));
            let given: Vec<_> = std::iter::once(first).chain(options).collect::<Option<_>>()?;
            let level = row.with(&given).ok()?.pop()?;
            match clip {
                Some(clip) => level.clipped(&clip).ok()?,
                None => level,
            }
        };
        (level.descriptor() == *self).then_some(level)
    }
}
