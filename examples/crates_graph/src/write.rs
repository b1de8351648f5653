//! Writes the graph as tables with their description.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::path::Path;

use anyhow::Context;
use burn_gnn::data::{
    EdgeTableEntry, NodeTableEntry, SplitTable, SplitTables, TableFeatures, TablesDescription,
    write_atomic,
};

use crate::extract::CratesGraph;

/// Writes every table, and the description last, so that a folder with a description is complete.
///
/// # Errors
/// The folder or a file cannot be written.
pub(crate) fn write(g: &CratesGraph, name: &str, out: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    let mut node_types = BTreeMap::new();
    let entry = |ntype: &str, count: usize| NodeTableEntry {
        file: format!("nodes_{ntype}.tsv"),
        count: count as u64,
        labeled: false,
        features: None,
        names_file: Some(format!("names_{ntype}.tsv")),
    };

    let row =
        |(i, c): (usize, &crate::extract::Crate)| format!("{i}\t{}\t{}", c.label, join(&c.buckets));
    table(
        out,
        "nodes_crate.tsv",
        "id:int64\tlabel:int32\tfeature:string",
        g.crates.iter().enumerate().map(row),
    )?;
    names(out, "crate", g.crates.iter().map(|c| &c.name))?;
    let features = Some(TableFeatures::Buckets { size: u64::from(g.buckets) });
    node_types.insert(
        "crate".to_owned(),
        NodeTableEntry { labeled: true, features, ..entry("crate", g.crates.len()) },
    );
    for (ntype, of_type) in &g.others {
        table(out, &format!("nodes_{ntype}.tsv"), "id:int64", 0..of_type.len())?;
        names(out, ntype, of_type.iter())?;
        node_types.insert((*ntype).to_owned(), entry(ntype, of_type.len()));
    }

    let mut edge_types = vec![];
    for r in &g.relations {
        let file = format!("edges_{}.tsv", r.name);
        table(
            out,
            &file,
            "src_id:int64\tdst_id:int64",
            r.edges.iter().map(|(s, d)| format!("{s}\t{d}")),
        )?;
        let (relation, dst) = (r.name.to_owned(), r.dst.to_owned());
        edge_types.push(EdgeTableEntry {
            src: "crate".into(),
            relation,
            dst,
            file,
            count: r.edges.len() as u64,
        });
    }

    let part = |which: usize, part: &str| -> anyhow::Result<SplitTable> {
        let file = format!("split_{part}.tsv");
        let ids: Vec<usize> = (0..g.crates.len())
            .filter(|&i| g.crates[i].part == which && g.crates[i].label >= 0)
            .collect();
        table(out, &file, "id:int64\tweight:float", ids.iter().map(|i| format!("{i}\t1.0")))?;
        Ok(SplitTable { file, count: ids.len() as u64 })
    };
    let split = SplitTables {
        train: part(0, "train")?,
        val: Some(part(1, "val")?),
        test: part(2, "test")?,
    };

    names(out, "class", g.classes.iter())?;
    let description = TablesDescription {
        format_version: TablesDescription::FORMAT_VERSION,
        name: name.to_owned(),
        target: "crate".into(),
        inverse_edges_stored: false,
        node_types,
        edge_types,
        class_names: g.classes.clone(),
        splits: BTreeMap::from([("name_hash".to_owned(), split)]),
        notes: NOTES.map(str::to_owned).to_vec(),
    };
    let json = serde_json::to_string_pretty(&description)?;
    write_atomic(out.join("tables.json"), |w| writeln!(w, "{json}"))?;
    Ok(())
}

const NOTES: [&str; 6] = [
    "Made by the example crates_graph from cargo metadata with all features; ids are positions in sorted order.",
    "crate: one node per package and version. Label: top level of its first category, -1 without one; categories are not in the graph.",
    "Features of crates: lower-cased runs of letters and digits in name and description; column = FNV-1a 64 of the word modulo the size.",
    "author: FNV-1a 64 of the lower-cased name without address; names and addresses are not stored.",
    "license: single licences of the SPDX expression, an exception kept with its licence.",
    "Split name_hash: labelled crates by FNV-1a 64 of the crate name modulo 10: 0-5 train, 6-7 val, 8-9 test.",
];

fn join(numbers: &[u32]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn names<'a>(out: &Path, of: &str, names: impl Iterator<Item = &'a String>) -> anyhow::Result<()> {
    table(
        out,
        &format!("names_{of}.tsv"),
        "id:int64\tname:string",
        names.enumerate().map(|(i, n)| format!("{i}\t{n}")),
    )
}

fn table(
    out: &Path,
    file: &str,
    header: &str,
    rows: impl Iterator<Item = impl Display>,
) -> anyhow::Result<()> {
    let mut text = format!("{header}\n");
    for row in rows {
        writeln!(text, "{row}")?;
    }
    write_atomic(out.join(file), |w| w.write_all(text.as_bytes()))?;
    Ok(())
}
