//! Finds the order of nodes in the files.

use std::path::Path;

use anyhow::Result;
use burn_gnn_store::{CscBuild, NpyEdges, Renumbering, StoredCsc, StreamCut};

use crate::args::{Args, Order};

/// Parts whose nodes lie together.
const PARTS: usize = 64;

/// Finds the order out of a stream of the edges, which `settings` describe; files of a cut are for a while in `dir`.
pub(crate) fn find(
    args: &Args,
    dir: &Path,
    settings: &str,
    edges: impl Fn() -> Result<NpyEdges>,
) -> Result<Renumbering> {
    let n = args.num_nodes() as usize;
    match args.order {
        Order::Kept => Ok(Renumbering::new((0..n as u32).collect())?),
        Order::Degree => Ok(Renumbering::by_degree(n, edges()?)?),
        Order::Parts => {
            let file = dir.join("kept.csc");
            CscBuild::new(&file, n, n)
                .with_memory((args.memory / 3).max(4 << 20))
                .with_stream_name(settings)
                .run(edges()?)?;
            let kept = StoredCsc::open(&file)?;
            let parts = StreamCut::new(PARTS.min(n)).with_passes(2).assign(&kept)?;
            std::fs::remove_file(&file)?;
            Ok(Renumbering::by_part(&parts, ..))
        }
    }
}
