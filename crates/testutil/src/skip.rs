//! Skips a test, or fails it where nothing may be skipped.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::record;

const REQUIRE: &str = "BURN_GNN_REQUIRE";

/// Reason of tests that need a GPU, where there is none.
pub const NO_ADAPTER: &str = "no GPU found here (software Vulkan: mesa-vulkan-drivers)";
/// Reason of tests that need a GPU, without a feature that adds a backend.
pub const NO_GPU_BACKEND: &str = "built without the features `wgpu` and `cuda`";
/// Reason of tests of 16-bit floats on a GPU that has none.
pub const NO_F16: &str = "the device calculates with no 16-bit floats";

/// What a test can lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A GPU, or software Vulkan in its place.
    Gpu,
    /// A GPU that calculates with 16-bit floats.
    F16,
    /// The golden vectors.
    Golden,
    /// A data set of the repository, in `tests/data`.
    Data,
    /// A data set of `../shared/data`, beside the workspace.
    Shared,
    /// An MPI library.
    Mpi,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Gpu, Self::F16, Self::Golden, Self::Data, Self::Shared, Self::Mpi];

    /// Its name in `BURN_GNN_REQUIRE`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::F16 => "f16",
            Self::Golden => "golden",
            Self::Data => "data",
            Self::Shared => "shared",
            Self::Mpi => "mpi",
        }
    }
}

/// Records that a test does nothing, or less than it could, for want of `kind`. The caller must return afterwards.
///
/// # Panics
/// Where `BURN_GNN_REQUIRE` names `kind`, or anything that is no kind.
pub fn skip(kind: Kind, reason: &str) {
    let required =
        required(&std::env::var(REQUIRE).unwrap_or_default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        !required.contains(&kind),
        "{REQUIRE} names `{}`, which is missing: {reason}",
        kind.word()
    );
    // A property test asks for every case.
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = record::line(kind, &record::test_name(), reason);
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        // Past the capture of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped ({}): {reason}", kind.word());
        record::keep(&line);
    }
}

/// Whether every word of `BURN_GNN_REQUIRE` is a kind.
///
/// # Errors
/// A word that is none.
pub fn check_required() -> Result<(), String> {
    required(&std::env::var(REQUIRE).unwrap_or_default()).map(drop)
}

/// The kinds in a list with commas.
pub(crate) fn required(words: &str) -> Result<Vec<Kind>, String> {
    let kind = |word: &str| {
        let all = Kind::ALL.map(Kind::word).join(", ");
        let found = Kind::ALL.into_iter().find(|k| k.word() == word);
        found.ok_or_else(|| {
            format!("{REQUIRE}: expected words out of {all} with commas between, found `{word}`")
        })
    };
    words.split(',').map(str::trim).filter(|word| !word.is_empty()).map(kind).collect()
}
