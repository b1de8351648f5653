//! Skips a test, or fails it if `BURN_GNN_REQUIRE` forbids to skip it.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::record;

const REQUIRE: &str = "BURN_GNN_REQUIRE";

/// Reason of tests that need a GPU if none is found.
pub const NO_ADAPTER: &str = "no GPU found (software Vulkan: mesa-vulkan-drivers)";
/// Reason of tests that need a GPU if no GPU backend is compiled in.
pub const NO_GPU_BACKEND: &str = "built without the features `wgpu` and `cuda`";
/// Reason of tests of 16-bit floats if the GPU does not support them.
pub const NO_F16: &str = "the device does not support 16-bit floats";

/// A requirement of tests that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A GPU, or software Vulkan.
    Gpu,
    /// A GPU that supports 16-bit floats.
    F16,
    /// The golden vectors.
    Golden,
    /// A data set of the repository, in `tests/data`.
    Data,
    /// A data set of `../shared/data`, next to the workspace.
    Shared,
    /// An MPI library.
    Mpi,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Gpu, Self::F16, Self::Golden, Self::Data, Self::Shared, Self::Mpi];

    /// Name of the kind in `BURN_GNN_REQUIRE`.
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

/// Records that a test is skipped, wholly or in part, because `kind` is missing. The caller must
/// return afterwards.
///
/// # Panics
/// If `BURN_GNN_REQUIRE` contains `kind`, or a word that is not a kind.
pub fn skip(kind: Kind, reason: &str) {
    let required =
        required(&std::env::var(REQUIRE).unwrap_or_default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        !required.contains(&kind),
        "{REQUIRE} requires `{}`, which is missing: {reason}",
        kind.word()
    );
    // A property test calls this for every case.
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = record::line(kind, &record::test_name(), reason);
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        // Bypasses the capture of the output of passing tests.
        let _ = writeln!(std::io::stderr(), "skipped ({}): {reason}", kind.word());
        record::keep(&line);
    }
}

/// Checks that every word of `BURN_GNN_REQUIRE` is a kind.
///
/// # Errors
/// A word is not a kind.
pub fn check_required() -> Result<(), String> {
    required(&std::env::var(REQUIRE).unwrap_or_default()).map(drop)
}

/// Parses a comma-separated list of kinds.
pub(crate) fn required(words: &str) -> Result<Vec<Kind>, String> {
    let kind = |word: &str| {
        let all = Kind::ALL.map(Kind::word).join(", ");
        let found = Kind::ALL.into_iter().find(|k| k.word() == word);
        found.ok_or_else(|| {
            format!("{REQUIRE}: expected a comma-separated list of {all}, found `{word}`")
        })
    };
    words.split(',').map(str::trim).filter(|word| !word.is_empty()).map(kind).collect()
}
