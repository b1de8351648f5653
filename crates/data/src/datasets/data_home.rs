//! Locates the folder of data sets.

use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;

use super::Known;

/// Variable of the environment that names the folder of data sets.
const VARIABLE: &str = "BURN_GNN_DATA";

/// A folder with a folder for each data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataHome {
    dir: PathBuf,
    download: bool,
    progress: bool,
}

impl Default for DataHome {
    fn default() -> Self {
        Self::new()
    }
}

impl DataHome {
    /// The folder that `BURN_GNN_DATA` names, otherwise `burn-gnn` in the cache folder of the system (`~/.cache` on
    /// Linux).
    pub fn new() -> Self {
        let dir = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
        let cache = || dirs::cache_dir().unwrap_or_else(std::env::temp_dir).join("burn-gnn");
        Self::at(dir.unwrap_or_else(cache))
    }
    /// This folder.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), download: cfg!(feature = "download"), progress: true }
    }
    /// Fetches nothing: what is missing is an error.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.download = false;
        self
    }
    /// With or without progress bars, and the terms of what is fetched, on the terminal.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// Whether progress is shown.
    pub fn progress(&self) -> bool {
        self.progress
    }

    /// The folder of a set with all its files, after fetching what is missing.
    pub(super) fn provide(&self, set: Known) -> Result<PathBuf, DataError> {
        let dir = self.dir.join(set.name());
        let files = set.about().files;
        let missing = || files.iter().filter(|f| !dir.join(f.name).exists()).collect::<Vec<_>>();
        #[cfg(feature = "download")]
        if self.download && !missing().is_empty() {
            super::fetch::fetch_set(self, set, &dir, &missing())?;
        }
        let missing = missing();
        if missing.is_empty() {
            return Ok(dir);
        }
        Err(DataError::DataMissing {
            set: set.name(),
            dir,
            files: missing.iter().map(|f| (f.name, f.url)).collect(),
            remedy: if cfg!(feature = "download") {
                "or allow downloads"
            } else {
                "or build with the feature `download`"
            },
        })
    }
}
