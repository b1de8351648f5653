//! Reads the splits of the folder `split`.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;

use crate::dataset::Split;
use crate::files::{format_error, io_error};
use crate::layouts::matrix::{Matrix, read_matrix};
use crate::layouts::ogb::raw_folder::expect;

pub(super) fn splits(
    dir: &Path,
    ntype: Option<&str>,
    nodes: usize,
) -> Result<BTreeMap<String, Split>, DataError> {
    let mut out = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(out) };
    for entry in entries {
        let folder = entry.map_err(|e| io_error(dir, e))?.path();
        let inner = ntype.map_or(folder.clone(), |t| folder.join(t));
        if !inner.is_dir() {
            continue;
        }
        let part = |stem: &str| -> Result<Vec<u32>, DataError> {
            let path = expect(&inner, stem)?;
            let m: Matrix<i64> = read_matrix(&path, Some(1), b',', false)?;
            let id = |&v: &i64| match u32::try_from(v).ok().filter(|&v| (v as usize) < nodes) {
                Some(v) => Ok(v),
                None => Err(format_error(
                    &path,
                    format!("expected node numbers in 0..{nodes}, found {v}"),
                )),
            };
            m.values.iter().map(id).collect()
        };
        let split = Split { train: part("train")?, val: part("valid")?, test: part("test")? };
        out.insert(
            folder.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned()),
            split,
        );
    }
    Ok(out)
}
