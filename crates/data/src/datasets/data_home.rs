//! The folder in which data sets are stored.

use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;

#[cfg(feature = "download")]
use crate::datasets::fetch::fetch_set;
use crate::datasets::remote_file::DatasetInfo;

/// Environment variable with the path of the folder of data sets.
const VARIABLE: &str = "BURN_GNN_DATA";

/// Folder of data sets, with one subfolder per data set, and options for downloads.
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
    /// The default folder: the value of the environment variable `BURN_GNN_DATA`, or else `burn-gnn` in the cache folder
    /// of the system (`~/.cache` on Linux).
    pub fn new() -> Self {
        let dir = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
        let cache = || dirs::cache_dir().unwrap_or_else(std::env::temp_dir).join("burn-gnn");
        Self::at(dir.unwrap_or_else(cache))
    }
    /// A given folder.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), download: cfg!(feature = "download"), progress: true }
    }
    /// Disables downloads: a missing file is an error.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.download = false;
        self
    }
    /// Enables or disables progress bars and the note on licence and citation before a download. Enabled by default.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
    /// Path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// Whether progress bars are enabled.
    pub fn progress(&self) -> bool {
        self.progress
    }

    /// Downloads missing files of a data set and returns its folder.
    pub(super) fn provide(
        &self,
        set: &'static str,
        about: &DatasetInfo,
    ) -> Result<PathBuf, DataError> {
        let dir = self.dir.join(set);
        let files = about.files;
        let missing = || files.iter().filter(|f| !dir.join(f.name).exists()).collect::<Vec<_>>();
        #[cfg(feature = "download")]
        if self.download && !missing().is_empty() {
            fetch_set(self.progress, set, about, &dir, &missing())?;
        }
        let missing = missing();
        if missing.is_empty() {
            return Ok(dir);
        }
        Err(DataError::DataMissing {
            set,
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
