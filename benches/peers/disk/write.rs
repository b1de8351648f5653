//! Writes benchmark graphs as `.npy` files, for other systems.
//!
//! ```text
//! FOLDER/GRAPH/meta.json                        sizes, and a checksum of the edges of every relation
//! FOLDER/GRAPH/{src,dst}.npy                    int64, one node type
//! FOLDER/GRAPH/<src>.<relation>.<dst>.npy       int64 [2, edges], several node types
//! FOLDER/GRAPH/{feat,label,train}[.<type>].npy  float32 [nodes, features], int64, int64
//! ```

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::graphs::{Task, checksum, homogeneous, typed};

/// Writes the graph `name` into the folder of this name below `folder`. `meta.json` is written
/// last: a folder with this file is complete.
pub(crate) fn run(folder: &Path, name: &str) -> Result<()> {
    let dir = folder.join(name);
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let meta = match homogeneous(name) {
        Some(g) => {
            ids(&dir.join("src.npy"), &[&g.src])?;
            ids(&dir.join("dst.npy"), &[&g.dst])?;
            let sizes = json!({"kind": "homo", "nodes": g.nodes, "edges": g.src.len(), "checksum": checksum(&g.src, &g.dst)});
            task(&dir, "", &g.task, sizes)?
        }
        None => {
            let g = typed(name).with_context(|| format!("no graph is called `{name}`"))?;
            let mut relations = vec![];
            for e in &g.edges {
                let (s, r, d) = &e.name;
                ids(&dir.join(format!("{s}.{r}.{d}.npy")), &[&e.src, &e.dst])?;
                relations.push(json!({"rel": [s, r, d], "edges": e.src.len(), "checksum": checksum(&e.src, &e.dst)}));
            }
            let ntypes: serde_json::Map<String, Value> =
                g.ntypes.iter().map(|&(t, n)| (t.to_owned(), json!(n))).collect();
            let sizes =
                json!({"kind": "hetero", "ntypes": ntypes, "target": g.target, "rels": relations});
            task(&dir, &format!(".{}", g.target), &g.task, sizes)?
        }
    };
    put(&dir.join("meta.json"), |out| Ok(serde_json::to_writer_pretty(out, &meta)?))
}

/// Writes features, labels and training nodes, and adds their sizes to `sizes`.
fn task(dir: &Path, of: &str, task: &Task, mut sizes: Value) -> Result<Value> {
    let shape = format!("({}, {})", task.labels.len(), task.width);
    array(
        &dir.join(format!("feat{of}.npy")),
        "<f4",
        &shape,
        task.features.iter().map(|x| x.to_le_bytes()),
    )?;
    array(
        &dir.join(format!("label{of}.npy")),
        "<i8",
        &format!("({},)", task.labels.len()),
        task.labels.iter().map(|x| x.to_le_bytes()),
    )?;
    ids(&dir.join(format!("train{of}.npy")), &[&task.train])?;
    for (key, value) in
        [("feat", task.width), ("classes", task.classes), ("train", task.train.len())]
    {
        sizes[key] = json!(value);
    }
    Ok(sizes)
}

/// Rows of one length as int64; a single one has no axis of rows.
fn ids(path: &Path, rows: &[&[u32]]) -> Result<()> {
    let len = rows[0].len();
    let shape =
        if rows.len() == 1 { format!("({len},)") } else { format!("({}, {len})", rows.len()) };
    array(
        path,
        "<i8",
        &shape,
        rows.iter().flat_map(|row| row.iter().map(|&id| i64::from(id).to_le_bytes())),
    )
}

/// A `.npy` file of version 1.0 in C order.
fn array<const N: usize>(
    path: &Path,
    dtype: &str,
    shape: &str,
    mut items: impl Iterator<Item = [u8; N]>,
) -> Result<()> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version and length take 10 bytes; data begin at a multiple of 64.
    header += &" ".repeat((64 - (10 + header.len() + 1) % 64) % 64);
    header.push('\n');
    put(path, |out| {
        out.write_all(b"\x93NUMPY\x01\x00")?;
        out.write_all(&u16::try_from(header.len())?.to_le_bytes())?;
        out.write_all(header.as_bytes())?;
        Ok(items.try_for_each(|bytes| out.write_all(&bytes))?)
    })
}

/// Writes to a temporary name, then renames.
fn put(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let folder = path.parent().context("a file in a folder")?;
    let mut file = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("writing into {}", folder.display()))?;
    let mut out = BufWriter::new(&mut file);
    write(&mut out)
        .and_then(|()| Ok(out.flush()?))
        .with_context(|| format!("writing {}", path.display()))?;
    drop(out);
    file.persist(path).with_context(|| format!("writing {}", path.display()))?;
    Ok(())
}
