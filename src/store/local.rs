//! Files of this machine as objects.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::object::Object;
use super::objects::Objects;
use super::other_tables::{Checked, FoldersOfMachine};
use super::partitions::{is_left_by_jobs, is_partition_name, shown};
use super::released::RECORD;
use crate::engine::Context;
use crate::error::{Error, ErrorCode, Result, of_file};
use crate::progress::CancelToken;

/// The files that a path or a glob reaches.
pub(super) struct LocalFiles {
    pub(super) argument: String,
    pub(super) path: PathBuf,
}

impl Objects for LocalFiles {
    fn list(&self, _: &CancelToken) -> Result<Vec<Object>> {
        let (root, paths) = (without_dots(&self.root()), self.paths()?);
        let object = |path: PathBuf| {
            let below = without_dots(&path);
            let below = below
                .strip_prefix(&root)
                .map_err(|_| Error::internal("store: a file lies in no folder that was named"))?;
            if below.to_str().is_none()
                && below.parent().is_some_and(|folders| folders.to_string_lossy().contains('='))
            {
                let why = "the name of a partition folder is not UTF-8, so its value cannot be read; rename the folder";
                return Err(Error::data(why).at(format!("input `{}`", self.argument)));
            }
            Object::of_file_below(path, below.to_string_lossy().into_owned())
        };
        paths.into_iter().map(object).collect()
    }

    fn readable(&self, objects: Vec<Object>, _: bool, _: &CancelToken) -> Result<Vec<Object>> {
        Ok(objects)
    }

    fn record(&self) -> Option<String> {
        let root = self.root();
        let partitions = root.ancestors().take_while(|folder| is_partition(folder)).count();
        let mut folders = root.ancestors().take(partitions + 1);
        folders.find_map(|folder| fs::read_to_string(folder.join(RECORD)).ok())
    }

    fn is_one_with_later(&self) -> bool {
        true
    }
}

impl LocalFiles {
    /// Returns what is named, or the literal start of the glob.
    fn root(&self) -> PathBuf {
        if self.path.exists() || !has_wildcard(&self.path.to_string_lossy()) {
            return self.path.clone();
        }
        let is_literal = |part: &Component<'_>| !has_wildcard(&part.as_os_str().to_string_lossy());
        without_dots(&self.path).components().take_while(is_literal).collect()
    }

    /// Returns the files that are named, sorted, each once.
    fn paths(&self) -> Result<Vec<PathBuf>> {
        let Self { argument, path } = self;
        let pattern = path.to_string_lossy();
        let (mut paths, mut checked) = (Vec::new(), Checked::new(FoldersOfMachine));
        if path.is_dir() {
            collect(path, &mut paths, &mut checked)?;
        } else if path.exists() {
            paths.push(path.clone());
        } else if has_wildcard(&pattern) {
            let matches =
                glob::glob(&pattern).map_err(|e| Error::policy(format!("input `{argument}`: {}", e.msg)))?;
            // Hidden names are allowed in the literal start of the pattern, and skipped below it.
            let named = self.root().components().count();
            for found in matches {
                let found =
                    found.map_err(|e| Error::data(of_file(e.error())).at(format!("input `{argument}`")))?;
                let below: PathBuf = without_dots(&found).components().skip(named).collect();
                if below.ancestors().any(is_hidden) {
                    continue;
                }
                checked.check_path(found.parent().unwrap_or(&found))?;
                if found.is_dir() {
                    collect(&found, &mut paths, &mut checked)?;
                } else {
                    paths.push(found);
                }
            }
        } else {
            let why = format!("input `{argument}`: no such file, folder or glob");
            return Err(Error::data(why).coded(ErrorCode::NotFound));
        }
        paths.sort();
        // A file that is reached in two ways is one file.
        let mut known: HashMap<PathBuf, PathBuf> = HashMap::new();
        let mut is_twice = false;
        let folders = |path: &Path| {
            let is_partition = |part: &Component<'_>| is_partition_name(&part.as_os_str().to_string_lossy());
            let folders = path.parent().unwrap_or(Path::new("")).components().filter(is_partition);
            folders.collect::<PathBuf>()
        };
        paths.retain(|path| {
            let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            match known.insert(real.clone(), folders(path)) {
                None => true,
                Some(first) => {
                    is_twice |= first != folders(path);
                    known.insert(real, first);
                    false
                }
            }
        });
        if is_twice {
            let why = "a link makes one file a part of two partition folders; remove the link";
            return Err(Error::data(why).at(format!("input `{argument}`")));
        }
        Ok(paths)
    }
}

/// Returns a path without `.`: a glob gives paths without the one that it begins with.
fn without_dots(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>, checked: &mut Checked<FoldersOfMachine>) -> Result<()> {
    checked.check_path(folder)?;
    let place = format!("input folder {}", shown(&folder.to_string_lossy()));
    for entry in fs::read_dir(folder).context(&place)? {
        let path = entry.context(&place)?.path();
        if is_hidden(&path) {
            continue;
        }
        match path.is_dir() {
            true => collect(&path, paths, checked)?,
            false => paths.push(path),
        }
    }
    Ok(())
}

/// Returns the files below a folder that are not hidden; `None` if they cannot be listed, or are of a table of another format.
pub(crate) fn files_below(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut paths = Vec::new();
    collect(folder, &mut paths, &mut Checked::new(FoldersOfMachine)).ok()?;
    Some(paths)
}

/// Returns whether a text is a pattern of names.
pub(super) fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns whether a folder is a partition by its name (`name=value`).
pub fn is_partition(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| is_partition_name(&name.to_string_lossy()))
}

/// Returns whether folders and globs skip a name.
pub fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_left_by_jobs(&name.to_string_lossy()))
}
