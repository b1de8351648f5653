//! Finds golden vectors and data sets, wherever the calling package is.

use std::path::{Path, PathBuf};

use crate::{Kind, skip};

const GOLDEN: &str = "BURN_GNN_GOLDEN";

/// Names of the data sets in `tests/data`, which every clone has.
pub(crate) const OF_THE_REPOSITORY: [&str; 4] = ["cora", "cora_graphlearn", "citeseer", "wn18rr"];

/// Root of the workspace: the nearest folder with a `Cargo.lock` above the package whose tests run.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for tests. The path that is compiled in may be from another machine.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = package.ancestors().find(|dir| dir.join("Cargo.lock").is_file());
    root.unwrap_or_else(|| panic!("no Cargo.lock in {} and the folders above", package.display()))
        .to_owned()
}

/// Returns the folder of a data set in `tests/data`, or in `../shared/data` next to the workspace.
/// If neither exists, the test is skipped.
///
/// # Panics
/// As [`skip`].
#[must_use]
pub fn data(name: &str) -> Option<PathBuf> {
    let root = root();
    let found = data_in(&[root.join("tests/data"), root.join("../shared/data")], name);
    if found.is_none() {
        skip(kind_of(name), &format!("no data set `{name}` in tests/data or ../shared/data"));
    }
    found
}

/// Kind of the requirement for a data set.
pub(crate) fn kind_of(name: &str) -> Kind {
    if OF_THE_REPOSITORY.contains(&name) { Kind::Data } else { Kind::Shared }
}

pub(crate) fn data_in(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|dir| dir.is_dir())
}

/// Returns the folder of the golden vectors: `BURN_GNN_GOLDEN`, or `tests/golden/vectors`. If the
/// variable is not set and the folder does not exist, the test is skipped.
///
/// # Panics
/// If `BURN_GNN_GOLDEN` is a folder without `manifest.json`, and as [`skip`].
#[must_use]
pub fn golden() -> Option<PathBuf> {
    let found = golden_in(std::env::var_os(GOLDEN).map(PathBuf::from), &root())
        .unwrap_or_else(|e| panic!("{e}"));
    if found.is_none() {
        skip(
            Kind::Golden,
            &format!("no tests/golden/vectors/manifest.json ({GOLDEN} names another folder)"),
        );
    }
    found
}

pub(crate) fn golden_in(asked: Option<PathBuf>, root: &Path) -> Result<Option<PathBuf>, String> {
    let folder = asked.clone().unwrap_or_else(|| root.join("tests/golden/vectors"));
    match (folder.join("manifest.json").is_file(), asked) {
        (true, _) => Ok(Some(folder)),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(format!(
            "{GOLDEN}: expected a folder with manifest.json, found none in {}",
            folder.display()
        )),
    }
}
