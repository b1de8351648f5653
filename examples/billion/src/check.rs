//! Checks that batches and losses equal those of the graph in memory.

use anyhow::Result;
use burn_gnn::graph::Graph;
use burn_gnn::sampling::{FeatureSource, MemoryRows, MiniBatch, RowType};
use burn_gnn_store::{EdgeChunk, EdgeStream, NpyEdges};

use crate::args::Args;
use crate::generate::Shape;
use crate::learn::{Batches, State, seeds, train};

/// Whether the graph and its layout fit into memory together with the program.
fn fits(args: &Args) -> bool {
    let (n, e) = (u64::from(args.num_nodes()), args.edges);
    20 * e + 24 * n < args.memory / 2
}

/// Equality of everything that a batch has.
fn same(a: &MiniBatch, b: &MiniBatch) -> bool {
    let mut blocks = a.blocks.iter().zip(&b.blocks);
    let same = |(a, b): (&burn_gnn::sampling::Block, &burn_gnn::sampling::Block)| {
        a.src_nodes(0) == b.src_nodes(0)
            && a.dst_nodes(0) == b.dst_nodes(0)
            && a.relations() == b.relations()
            && a.in_degrees(0) == b.in_degrees(0)
    };
    a.seeds == b.seeds && a.blocks.len() == b.blocks.len() && blocks.all(same)
}

/// Whether all batches of the epoch and all losses are those in memory, bit for bit; `None` where memory does not
/// hold the graph.
pub(crate) fn equal(
    args: &Args,
    shape: &Shape,
    stored: &Graph,
    edges: NpyEdges,
    count: usize,
    losses: &[f32],
) -> Result<Option<bool>> {
    if !fits(args) {
        return Ok(None);
    }
    let memory = in_memory(args, edges)?;
    let ids = seeds(args, count);
    let (of_file, of_memory) =
        (Batches::new(args, stored, ids.clone())?, Batches::new(args, &memory, ids)?);
    for step in 0..of_file.steps() {
        if !same(&of_file.make(step)?.0, &of_memory.make(step)?.0) {
            return Ok(Some(false));
        }
    }
    let batches = (0..of_memory.steps()).map(|step| -> Result<(MiniBatch, Vec<f32>)> {
        let (batch, ids) = of_memory.make(step)?;
        // What the file of features was made of, rounded as it is there.
        let mut values = Vec::with_capacity(ids.len() * args.width);
        ids.iter().for_each(|&v| shape.row(v, args.width, &mut values));
        let rows = MemoryRows::new(&values, args.width, RowType::F16)?;
        Ok((batch, rows.gather(&(0..ids.len() as u32).collect::<Vec<_>>())?))
    });
    let again = train(args, shape, State::new(args)?, batches, |_| Ok(()))?.losses;
    Ok(Some(again.iter().map(|l| l.to_bits()).eq(losses.iter().map(|l| l.to_bits()))))
}

fn in_memory(args: &Args, mut edges: NpyEdges) -> Result<Graph> {
    let mut all = EdgeChunk {
        src: Vec::with_capacity(args.edges as usize),
        dst: Vec::with_capacity(args.edges as usize),
        ..EdgeChunk::default()
    };
    while edges.read(1 << 16, &mut all)? > 0 {}
    let n = args.num_nodes() as usize;
    // One copy of the edges: the builder takes the lists.
    Ok(Graph::homogeneous(n, all.src, all.dst)?)
}
