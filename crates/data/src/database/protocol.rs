//! Which rows a seed may see.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::database::Database;
use super::task::Part;

/// Which rows are visible when a part of a task is evaluated. Figures of the two protocols differ and are not
/// compared.
///
/// Training seeds see rows up to their own time under both, and no seed sees a row after its own time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The database is frozen: validation seeds see rows up to the validation time, test seeds rows up to the test time.
    /// RelBench's leaderboard evaluates the test part this way.
    #[default]
    Frozen,
    /// Each seed sees rows up to its own time, as in a system that predicts with the data of the day.
    SeedTime,
}

impl Protocol {
    /// `frozen` or `seed-time`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::SeedTime => "seed-time",
        }
    }
    /// The latest time of a row that is visible for a seed of a part. A database without the timestamp of the part is not
    /// frozen.
    pub fn visible_until(self, part: Part, seed_time: i64, db: &Database) -> i64 {
        let frozen = match (self, part) {
            (Self::SeedTime, _) | (_, Part::Train) => None,
            (Self::Frozen, Part::Val) => db.val_timestamp(),
            (Self::Frozen, Part::Test) => db.test_timestamp(),
        };
        frozen.map_or(seed_time, |frozen| frozen.min(seed_time))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
