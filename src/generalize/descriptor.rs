//! Descriptors: what a level does to its values, as data for records and as text for fields.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Centroid;
use crate::decimal::Decimal;
use crate::known::OTHER;

/// The name of the generalizer that clips, alone or before another one.
const CLIP: &str = "clip";

/// The name of the generalizer by a hierarchy file.
const FILE: &str = "hierarchy";

/// The name of the generalizer by a tree that a run has made.
const MERGE: &str = super::merge::DOC.name;

/// The option with the label of the values that `merge` joined, where that is not [`OTHER`].
const LABEL: &str = "label";

/// The whole function of a level. Equal descriptors on columns of the same type mean equal
/// functions, except for the levels of hierarchy files, whose labels only the file has.
///
/// Its text is written into the metadata of a released field as `kanon.generalized`:
///
/// ```
/// use datafusion_kanon::extend::{Descriptor, Value};
/// let tens: Descriptor = "range:10 origin:5 clip:0,90".parse()?;
/// assert_eq!((tens.generalizer.as_str(), tens.options["origin"].as_str()), ("range", "5"));
/// assert_eq!(tens.to_string(), "range:10 origin:5 clip:0,90");
/// let level = tens.restore(true).ok_or("no level")?;
/// assert_eq!(level.generalize_value(&Value::Int(39))?, Value::Text("[35,45)".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// The name of a generalizer, or `as_is`.
    pub generalizer: String,
    /// The argument of this level: a number or a word, or the cut points of `bands`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub argument: Vec<String>,
    /// The options that differ from their defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub options: BTreeMap<String, String>,
    /// The two ends at which numbers are clipped first; `None` on a side without a bound.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clip: Option<[Option<String>; 2]>,
}

impl Descriptor {
    /// Describes a generalizer without an argument.
    pub fn new(generalizer: &str) -> Self {
        Self { generalizer: generalizer.to_owned(), argument: vec![], options: BTreeMap::new(), clip: None }
    }

    /// Describes the level as is.
    pub(crate) fn as_is() -> Self {
        Self::new("as_is")
    }

    /// Describes the top level.
    pub(crate) fn suppress() -> Self {
        Self::new("suppress")
    }

    /// Describes a column whose classes each show a region of their own.
    pub fn region() -> Self {
        Self::new("region")
    }

    /// Describes a column whose classes each show a centroid.
    pub fn centroid(centroid: Centroid) -> Self {
        Self::new("centroid").with(centroid.name())
    }

    /// Describes a level of a hierarchy file.
    pub(crate) fn of_file(level: usize) -> Self {
        Self::new(FILE).with(level)
    }

    /// Describes a level of a tree that `merge` made, with the label of the values that few hold if it
    /// shows one.
    pub(crate) fn of_merge(level: usize, label: Option<&String>) -> Self {
        let level = Self::new(MERGE).with(level);
        match label {
            Some(label) if label != OTHER => level.with_option(LABEL, label),
            _ => level,
        }
    }

    /// Returns the label of the values that `merge` joined, if the level shows one that is not `other`.
    pub fn label_of_merge(&self) -> Option<&String> {
        self.options.get(LABEL).filter(|_| self.is_of_merge())
    }

    /// Returns whether the level is one of a hierarchy file, which alone has its labels.
    pub fn is_of_file(&self) -> bool {
        self.generalizer == FILE
    }

    /// Returns whether the level is one of a tree that `merge` made, which only the private record has.
    pub fn is_of_merge(&self) -> bool {
        self.generalizer == MERGE
    }

    /// Returns whether the level may have no label for a value, because its values are on a list: of
    /// a hierarchy file, or of a known hierarchy.
    pub fn is_of_list(&self) -> bool {
        self.is_of_file() || self.generalizer == super::known::ROW.doc.name
    }

    /// Returns the generalizer with its argument, then each option and the clip with its setting.
    pub(crate) fn parts(&self) -> Vec<(&str, String)> {
        let mut parts = Vec::new();
        if self.generalizer != CLIP || self.clip.is_none() {
            parts.push((self.generalizer.as_str(), self.argument.join(",")));
        }
        parts.extend(self.options.iter().map(|(key, setting)| (key.as_str(), setting.clone())));
        if let Some(ends) = &self.clip {
            let [low, high] = ends.each_ref().map(|end| end.as_deref().unwrap_or_default());
            parts.push((CLIP, format!("{low},{high}")));
        }
        parts
    }

    /// Adds the argument of the level.
    #[must_use]
    pub fn with(mut self, argument: impl ToString) -> Self {
        self.argument.push(argument.to_string());
        self
    }

    /// Adds an option that differs from its default.
    #[must_use]
    pub fn with_option(mut self, key: &str, setting: impl ToString) -> Self {
        self.options.insert(key.to_owned(), setting.to_string());
        self
    }

    /// Adds the ends of a clip, if there is one.
    pub(super) fn clipped(mut self, ends: Option<[Option<Decimal>; 2]>) -> Self {
        self.clip = ends.map(|ends| ends.map(|end| end.map(|end| end.to_string())));
        self
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts().into_iter().map(|(name, setting)| match setting.as_str() {
            "" => name.to_owned(),
            // Spaces part the settings.
            setting => format!("{name}:{}", setting.replace('%', "%25").replace(' ', "%20")),
        });
        f.write_str(&parts.collect::<Vec<_>>().join(" "))
    }
}

/// The error for a text that does not describe a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a descriptor such as range:10 or date:year")]
pub struct DescriptorError;

impl FromStr for Descriptor {
    type Err = DescriptorError;

    /// Reads the text of a descriptor. It need not describe a level that exists.
    fn from_str(text: &str) -> Result<Self, DescriptorError> {
        let part = |part| {
            let (name, setting) = str::split_once(part, ':').unwrap_or((part, ""));
            (name, setting.replace("%20", " ").replace("%25", "%"))
        };
        let mut parts = text.split(' ').map(part).peekable();
        let mut descriptor = match parts.peek() {
            Some((name, _)) if *name == CLIP => Self::new(CLIP),
            _ => {
                let (name, argument) = parts.next().ok_or(DescriptorError)?;
                let argument = argument.split(',').filter(|_| !argument.is_empty()).map(str::to_owned);
                Self { argument: argument.collect(), ..Self::new(name) }
            }
        };
        for (key, setting) in parts {
            if key == CLIP {
                let (low, high) = setting.split_once(',').ok_or(DescriptorError)?;
                descriptor.clip =
                    Some([low, high].map(|end| Some(end.to_owned()).filter(|end| !end.is_empty())));
            } else {
                descriptor = descriptor.with_option(key, setting);
            }
        }
        if descriptor.to_string() == text { Ok(descriptor) } else { Err(DescriptorError) }
    }
}
