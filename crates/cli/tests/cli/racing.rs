//! Writes a small database of races: drivers fail with a frequency of their own.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::running::ok;

const DRIVERS: u64 = 12;
const RACES: u64 = 110;

/// Settings of a model that is trained in a moment.
const SETTINGS: &str = "
[training]
epochs = 2
fanouts = [6, 6]
[model]
kind = \"Sage\"
hidden = 16
[[tasks]]
name = \"driver-dnf\"
entity_table = \"drivers\"
table = \"results\"
aggregate = \"exists\"
filter = [{ column = \"statusId\", op = \"!=\", value = 1 }]
window = \"30 days\"
num_eval_timestamps = 3
";

/// A folder `races` of CSV files, in a temporary folder.
pub(crate) struct Racing(TempDir);

/// Date of a race: ten days apart from 2014-01-01.
pub(crate) fn date(race: u64) -> String {
    let days = 16_071 + 10 * race as i64;
    burn_gnn::data::format_time(days * 86_400_000_000)
}

/// Whether a driver fails in a race: a draw without state, of a probability that differs between drivers.
fn fails(driver: u64, race: u64) -> bool {
    let draw = (driver * 7919 + race * 104_729 + 12_345).wrapping_mul(6_364_136_223_846_793_005);
    (draw >> 33) % 100 < 2 + driver * 2
}

/// Files of tables, without a description.
pub(crate) fn write_tables(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let mut drivers = String::from("driverId,name,nationality,failures\n");
    let mut races = String::from("raceId,round,date\n");
    let mut results = String::from("resultId,raceId,driverId,points,statusId,date\n");
    for driver in 1..=DRIVERS {
        // A statistic over all times, which no model may see.
        let failures = (1..=RACES).filter(|&race| fails(driver, race)).count();
        let nationality = ["British", "German", "Italian"][driver as usize % 3];
        writeln!(drivers, "{driver},driver {driver},{nationality},{failures}").unwrap();
    }
    for race in 1..=RACES {
        writeln!(races, "{race},{},{}", race % 20, date(race)).unwrap();
        for driver in 1..=DRIVERS {
            let id = (race - 1) * DRIVERS + driver;
            let status = if fails(driver, race) { 4 } else { 1 };
            let points = (driver * 3 + race) % 10;
            writeln!(results, "{id},{race},{driver},{points}.5,{status},{}", date(race)).unwrap();
        }
    }
    for (name, text) in [("drivers", drivers), ("races", races), ("results", results)] {
        std::fs::write(folder.join(format!("{name}.csv")), text).unwrap();
    }
}

impl Racing {
    /// Bare files.
    pub(crate) fn bare() -> Self {
        let dir = Self(tempfile::tempdir().unwrap());
        write_tables(&dir.path().join("races"));
        dir
    }

    /// With `schema.json` and settings, without the column that leaks.
    pub(crate) fn new() -> Self {
        let dir = Self::bare();
        ok(dir.path(), "init races");
        let settings = format!("{SETTINGS}[database]\nignored = [\"drivers.failures\"]\n");
        dir.put("races/burn-gnn.toml", &settings);
        dir
    }

    /// With a saved model in the folder `model`.
    pub(crate) fn trained() -> Self {
        let dir = Self::new();
        ok(dir.path(), "train races --seed 1 --out model");
        dir
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Settings that see the column `failures`.
    pub(crate) fn put_leaking_settings(&self) {
        self.put("races/burn-gnn.toml", SETTINGS);
    }
}
