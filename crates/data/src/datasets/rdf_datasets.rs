//! Reads the data sets of the R-GCN paper: RDF without the relation that reveals the class, and tables of labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::NodeIds;

use crate::dataset::{Dataset, Split, check_split};
use crate::files::{open, table_error};
use crate::formats::rdf::{RDF_NODE, RdfOptions, read_rdf};
use crate::tables::text::csv_records::{CsvFile, joined};

/// Reads `<name>_stripped.nt.gz`, `completeDataset.tsv`, `trainingSet.tsv` and `testSet.tsv`.
///
/// Classes are the sorted labels in `completeDataset.tsv`. Inverse relations are not stored.
pub(super) fn load(dir: &Path, name: &str, progress: bool) -> Result<Dataset, DataError> {
    let (node, label) = match name {
        // The published file has this spelling.
        "am" => ("proxy", "label_cateogory"),
        "aifb" => ("person", "label_affiliation"),
        "mutag" => ("bond", "label_mutagenic"),
        _ => ("rock", "label_lithogenesis"),
    };
    // The published files contain IRIs that are not valid.
    let options = RdfOptions::new().lenient().with_progress(progress);
    let rdf = read_rdf(dir.join(format!("{name}_stripped.nt.gz")), &options)?;
    let complete = dir.join("completeDataset.tsv");
    let classes: BTreeSet<String> =
        table(&complete, [node, label])?.into_iter().map(|row| row.1[1].clone()).collect();
    let class_names: Vec<String> = classes.into_iter().collect();
    let nothing = NodeIds::new(burn_gnn_graph::Ids::Text(Default::default()));
    let nodes = rdf.graph.nodes(RDF_NODE)?.ids().unwrap_or(&nothing);
    let mut labels = vec![-1; rdf.graph.num_nodes(RDF_NODE)?];
    let mut part = |file: &str| -> Result<Vec<u32>, DataError> {
        let path = dir.join(file);
        let mut out = vec![];
        for (line, [id, class]) in table(&path, [node, label])? {
            let number = nodes
                .number(id.as_str())
                .ok_or_else(|| table_error(&path, line, 0, "a node of the graph", &id))?;
            let class = class_names.binary_search(&class).map_err(|_| {
                table_error(&path, line, 0, "a class of completeDataset.tsv", &class)
            })?;
            labels[number as usize] = class as i64;
            out.push(number);
        }
        Ok(out)
    };
    let split = Split { train: part("trainingSet.tsv")?, val: vec![], test: part("testSet.tsv")? };
    check_split(&complete, "published", &split, &labels)?;
    Ok(Dataset {
        name: name.to_owned(),
        graph: rdf.graph,
        target: RDF_NODE.to_owned(),
        num_classes: class_names.len(),
        class_names,
        labels,
        features: BTreeMap::new(),
        splits: BTreeMap::from([("published".into(), split)]),
        inverse_edges_stored: false,
    })
}

/// Reads two columns of a tab-separated table, with the line number of each row.
fn table(path: &Path, columns: [&str; 2]) -> Result<Vec<(u64, [String; 2])>, DataError> {
    let mut file = CsvFile::new(path, b'\t', Box::new(open(path)?.0))?;
    let position = |name: &str| {
        let missing = || {
            table_error(
                path,
                file.head_line,
                0,
                format!("a column `{name}`"),
                &joined(file.head.iter(), ", "),
            )
        };
        file.head.iter().position(|h| h == name.as_bytes()).ok_or_else(missing)
    };
    let (positions, width) = ([position(columns[0])?, position(columns[1])?], file.head.len());
    let mut out = vec![];
    while let Some((record, line)) = file.next(path)? {
        let cell = |i: usize| -> Result<String, DataError> {
            let raw = record
                .get(positions[i])
                .ok_or_else(|| table_error(path, line, 0, format!("{width} fields"), "fewer"))?;
            let text = std::str::from_utf8(raw).map_err(|_| {
                table_error(path, line, positions[i] + 1, "UTF-8 text", "other bytes")
            })?;
            Ok(text.to_owned())
        };
        out.push((line, [cell(0)?, cell(1)?]));
    }
    Ok(out)
}
