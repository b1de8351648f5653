//! Finds data sets in a folder by their layouts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A folder with `metadata.json`.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) layout: String,
}

/// All sets of a folder, by name.
pub(crate) struct Sets(Vec<Set>);

impl Sets {
    /// Sets in `folder`, or `folder` itself.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        let mut folders = vec![folder.to_owned()];
        if !folder.join("metadata.json").exists() {
            let entries = std::fs::read_dir(folder)
                .with_context(|| format!("`--data {}`", folder.display()))?;
            folders = entries.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
        }
        folders.sort();
        let mut sets = vec![];
        for folder in folders.into_iter().filter(|f| f.join("metadata.json").exists()) {
            let file = folder.join("metadata.json");
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("reading {}", file.display()))?;
            let json: Value = serde_json::from_str(&text)
                .with_context(|| format!("reading {}", file.display()))?;
            let text = |key: &str| json[key].as_str().map(str::to_owned);
            let of_folder = folder.file_name().map(|n| n.to_string_lossy().into_owned());
            sets.push(Set {
                name: text("name").or(of_folder).unwrap_or_default(),
                layout: text("layout").unwrap_or_else(|| "graph".to_owned()),
                folder,
            });
        }
        if sets.is_empty() {
            bail!("`--data {}` contains no folder with metadata.json", folder.display());
        }
        Ok(Self(sets))
    }

    /// Sets of a layout, such as `triples`.
    pub(crate) fn of_layout(&self, layout: &str) -> impl Iterator<Item = &Set> {
        self.0.iter().filter(move |set| set.layout == layout)
    }
}
