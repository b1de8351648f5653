//! Reads the partition book from the metadata file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use burn_gnn_graph::{EdgeType, Schema};

use crate::error::DistError;
use crate::partition::format::checksummed_file::{check_sum, read_summed};
use crate::partition::format::metadata::{Metadata, OwnerMap};
use crate::partition::format::owner_map;
use crate::partition_book::{ByPart, Numbering, PartitionBook};

/// Builds the partition book. Checks that types are numbered in sorted order and that ranges are contiguous.
pub(crate) fn read_book(path: &Path, meta: &Metadata) -> Result<PartitionBook, DistError> {
    let bad = |message: String| DistError::format(path, message);
    let mut etypes = Vec::with_capacity(meta.etypes.len());
    for name in meta.etypes.keys() {
        let names: Vec<&str> = name.split(':').collect();
        let [s, r, d] = names[..] else {
            return Err(bad(format!("edge type `{name}`: expected `src:relation:dst`")));
        };
        etypes.push(EdgeType::new(s, r, d));
    }
    let schema = Schema::new(meta.ntypes.keys().cloned().collect(), etypes)
        .map_err(|e| bad(e.to_string()))?;
    let enames: Vec<String> = schema.etypes().iter().map(ToString::to_string).collect();
    if meta.ntypes.is_empty() || meta.num_parts == 0 || meta.num_trainers_per_machine == 0 {
        let (types, parts, trainers) =
            (meta.ntypes.len(), meta.num_parts, meta.num_trainers_per_machine);
        return Err(bad(format!(
            "expected at least one node type, part and trainer, got {types}, {parts} and {trainers}"
        )));
    }
    let numbering = |what: &'static str,
                     names: &[String],
                     numbers: &BTreeMap<String, u64>,
                     map: &OwnerMap,
                     total: u64| {
        for (t, name) in names.iter().enumerate() {
            if numbers.get(name) != Some(&(t as u64)) {
                return Err(bad(format!(
                    "{what} type `{name}`: expected number {t} (sorted order), got {:?}",
                    numbers.get(name)
                )));
            }
        }
        let map = match map {
            OwnerMap::File(file) => return read_owners(path, meta, what, names, file, total),
            OwnerMap::Ranges(map) => map,
        };
        if map.len() != names.len() {
            return Err(bad(format!(
                "`{what}_map`: expected {} types, got {}",
                names.len(),
                map.len()
            )));
        }
        let mut ranges = Vec::with_capacity(names.len());
        for name in names {
            match map.get(name) {
                Some(r) if r.len() == meta.num_parts => ranges.push(r),
                other => {
                    let n = other.map_or(0, Vec::len);
                    return Err(bad(format!(
                        "`{what}_map` of `{name}`: expected {} ranges, got {n}",
                        meta.num_parts
                    )));
                }
            }
        }
        // Ranges must be contiguous: part by part and, inside a part, type by type.
        let mut at = 0;
        if !ranges.is_empty() {
            for p in 0..meta.num_parts {
                for (r, name) in ranges.iter().zip(names) {
                    let [begin, end] = r[p];
                    if begin != at || end < begin {
                        return Err(bad(format!(
                            "`{what}_map` of `{name}`, part {p}: expected a range from {at}, got [{begin}, {end}]"
                        )));
                    }
                    at = end;
                }
            }
        }
        if at != total || total > i64::MAX as u64 {
            return Err(bad(format!("`{what}_map` covers {at} ids, `num_{what}s` is {total}")));
        }
        let counts: Vec<Vec<u64>> =
            ranges.into_iter().map(|r| r.iter().map(|r| r[1] - r[0]).collect()).collect();
        Numbering::ranges(what, meta.num_parts, &counts)
            .ok_or_else(|| bad("more than 2^64 ids".into()))
    };
    let nodes = numbering("node", schema.ntypes(), &meta.ntypes, &meta.node_map, meta.num_nodes)?;
    let edges = numbering("edge", &enames, &meta.etypes, &meta.edge_map, meta.num_edges)?;
    if nodes.is_kept() != edges.is_kept() {
        return Err(bad(
            "`node_map` and `edge_map`: expected two tables of ranges or two files".into()
        ));
    }
    Ok(PartitionBook::new(Arc::new(schema), meta.num_parts, nodes, edges))
}

/// Reads the owner file and builds a numbering that keeps ids.
fn read_owners(
    json: &Path,
    meta: &Metadata,
    what: &'static str,
    names: &[String],
    file: &str,
    total: u64,
) -> Result<Numbering, DistError> {
    let bad = |message: String| Err(DistError::format(json, message));
    // `num_parts` determines the size of tables, so it is compared with the number of entries before they are
    // allocated.
    if meta.parts.len() < meta.num_parts {
        return bad(format!(
            "expected {} entries `part-…`, got at most {}",
            meta.num_parts,
            meta.parts.len()
        ));
    }
    let key = format!("{what}_map");
    let Some(sum) = meta.checksums.get(&key) else { return bad(format!("no checksum of `{key}`")) };
    let (path, bytes) = read_summed(json, file, sum)?;
    check_sum(&path, &bytes, sum)?;
    let owners = owner_map::read(&path, &bytes, total, meta.num_parts)?;
    let (mut rest, mut parts) = (&owners[..], Vec::with_capacity(names.len()));
    for name in names {
        let count = meta.type_counts.get(name).copied();
        let split = count
            .filter(|&n| n < u64::from(u32::MAX))
            .and_then(|n| rest.split_at_checked(n as usize));
        let Some((own, tail)) = split else {
            return bad(format!(
                "`type_counts` of `{name}`: expected at most {} {what}s, since the previous types have all others, got {count:?}",
                rest.len()
            ));
        };
        parts.push(ByPart::new(own.len(), meta.num_parts, |i| own[i]));
        rest = tail;
    }
    if !rest.is_empty() {
        return bad(format!(
            "`type_counts`: expected {total} {what}s over all types, {} are missing",
            rest.len()
        ));
    }
    Numbering::kept(what, meta.num_parts, parts)
        .map_or_else(|| bad("more than 2^64 ids".into()), Ok)
}
