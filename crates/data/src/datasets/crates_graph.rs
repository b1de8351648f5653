//! The built-in graph of Rust crates and their dependencies.

use std::path::Path;

use crate::dataset::Dataset;
use crate::layouts::tables_layout;
use crate::tables::text::source::Source;

macro_rules! tables {
    ($($name:literal),* $(,)?) => {
        /// Names and contents of the tables.
        const TABLES: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("../../data/crates/", $name)))),*];
    };
}
tables!(
    "edges_build_depends.tsv",
    "edges_depends.tsv",
    "edges_dev_depends.tsv",
    "edges_has_keyword.tsv",
    "edges_licensed_under.tsv",
    "edges_written_by.tsv",
    "nodes_author.tsv",
    "nodes_crate.tsv",
    "nodes_keyword.tsv",
    "nodes_license.tsv",
    "split_test.tsv",
    "split_train.tsv",
    "split_val.tsv",
);
const DESCRIPTION: &str = include_str!("../../data/crates/tables.json");

/// A heterogeneous data set: 712 crates on which this library depends, 738 keywords, 275 authors (hashes of names) and
/// 16 licences.
///
/// * **Relations**, each in one direction: `depends`, `build_depends` and `dev_depends` between crates; `has_keyword`,
///   `written_by` and `licensed_under` from a crate.
/// * **Labels**: the first category of a crate, up to `::`; -1 for a crate without category.
/// * **Features** of crates: counts of the words of name and description, hashed into 1,024 buckets.
/// * **Split** `name_hash`: 310 training, 109 validation and 97 test crates.
///
/// The example `crates_graph` writes the tables, which are also in `crates/data/data/crates`.
///
/// ```
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let set = burn_gnn_data::crates_graph();
///     assert_eq!(set.graph.num_nodes("crate")?, 712);
///     let both_ways = set.graph.with_inverse_relations("-inv")?;
///     assert_eq!(both_ways.schema().etypes().len(), 12);
///     Ok(())
/// }
/// ```
///
/// # Panics
/// Never: the tables are constants, and a test reads them.
pub fn crates_graph() -> Dataset {
    let open = |path: &Path| {
        let found = TABLES.iter().find(|(name, _)| path.ends_with(name));
        Source::built_in(path, found.map_or(&[][..], |t| t.1))
    };
    // A test loads the tables, so the `expect`s cannot fail.
    let set = serde_json::from_str(DESCRIPTION)
        .map(|d| tables_layout::assemble(Path::new("crates"), d, open));
    set.expect("the description is JSON").expect("the crates graph is a valid data set")
}
