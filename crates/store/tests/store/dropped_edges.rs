//! Builds that drop edges: sampling and reading into memory give the graph of the remaining edges.

use std::sync::Arc;

use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_sampling::{
    FeatureSource, LinkSampler, MemoryRows, NeighborSampler, RandomWalk, RowType, SampleKey,
    Strategy,
};
use burn_gnn_store::{
    CscBuild, EdgeChunk, EdgeStream, RenumberedEdges, Renumbering, SelfLoops, StoreError,
    StoredGraph,
};
use proptest::prelude::*;

const NODES: u32 = 12;
const TYPE: (&str, &str, &str) = ("_N", "_E", "_N");

/// A remaining edge: source, destination, id in the stream, weight.
type Kept = (u32, u32, u64, f32);

/// Settings of a build.
#[derive(Clone, Copy, Debug)]
struct Options {
    loops: SelfLoops,
    simple: bool,
    ids: bool,
    weights: bool,
    times: bool,
}

fn all_options() -> impl Iterator<Item = Options> {
    let loops = [SelfLoops::Keep, SelfLoops::Remove, SelfLoops::Add, SelfLoops::Replace];
    (0..64).map(move |i| Options {
        loops: loops[i / 16],
        simple: i & 1 > 0,
        ids: i & 2 > 0,
        weights: i & 4 > 0,
        times: i & 8 > 0,
    })
}

fn weight(i: usize) -> f32 {
    (i % 7) as f32 + 0.5
}

/// A stream of edges with weights and times.
struct Full(Vec<(u32, u32)>, usize);

impl EdgeStream for Full {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let n = most.min(self.0.len() - self.1).min(5);
        for i in self.1..self.1 + n {
            chunk.src.push(self.0[i].0);
            chunk.dst.push(self.0[i].1);
            chunk.weights.push(weight(i));
            chunk.times.push(i as i64);
        }
        self.1 += n;
        Ok(n)
    }
}

/// The remaining edges of a build by definition, in the order of their ids.
fn kept(edges: &[(u32, u32)], of: Options) -> Vec<Kept> {
    let removes = matches!(of.loops, SelfLoops::Remove | SelfLoops::Replace);
    let adds = matches!(of.loops, SelfLoops::Add | SelfLoops::Replace);
    let stays = |(i, e): &(usize, &(u32, u32))| {
        !(removes && e.0 == e.1 || of.simple && edges[..*i].contains(e))
    };
    let mut out: Vec<Kept> = edges
        .iter()
        .enumerate()
        .filter(stays)
        .map(|(i, &(u, v))| (u, v, i as u64, weight(i)))
        .collect();
    if adds {
        out.extend((0..NODES).map(|v| (v, v, edges.len() as u64 + u64::from(v), 1.0)));
    }
    out
}

fn build(path: &std::path::Path, of: Options) -> CscBuild {
    let mut build = CscBuild::new(path, NODES as usize, NODES as usize).with_self_loops(of.loops);
    if of.simple {
        build = build.with_simple();
    }
    if of.ids {
        build = build.with_edge_ids();
    }
    if of.weights {
        build = build.with_weights();
    }
    if of.times {
        build = build.with_times();
    }
    build
}

fn open(dir: &std::path::Path, edges: &[(u32, u32)], of: Options) -> StoredGraph {
    build(&dir.join("csc"), of).run(Full(edges.to_vec(), 0)).unwrap();
    StoredGraph::create(dir, [("_N", NODES as usize)], [(TYPE, "csc")]).unwrap();
    StoredGraph::open(dir).unwrap()
}

fn in_memory(kept: &[Kept]) -> Graph {
    let (src, dst) = kept.iter().map(|e| (e.0, e.1)).unzip();
    Graph::homogeneous(NODES as usize, src, dst).unwrap()
}

/// Blocks, with the ids of their edges in the graph.
fn blocks(s: &NeighborSampler, key: u64, excluded: &[u32]) -> Vec<(Vec<u32>, Vec<u32>, Vec<u32>)> {
    let seeds: Vec<u32> = (0..NODES).step_by(2).collect();
    let batch =
        s.sample_excluding([("_N", &seeds)], [("_E", excluded)], SampleKey::new(key)).unwrap();
    let of = |b: &burn_gnn_sampling::Block| {
        (b.src_nodes(0).to_vec(), b.relations()[0].csc().indices().to_vec(), b.edge_ids(0).to_vec())
    };
    batch.blocks.iter().map(of).collect()
}

/// Checks all readers of a graph for one build.
fn compare(edges: &[(u32, u32)], of: Options) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let stored = open(dir.path(), edges, of);
    stored.verify().unwrap();
    let mut kept = kept(edges, of);
    if !of.ids {
        // Ids are then positions.
        kept.sort_by_key(|e| e.1);
    }
    let (memory, file) = (in_memory(&kept), stored.graph());
    let (m, s) = (memory.relation("_E").unwrap(), file.relation("_E").unwrap());

    // Sampling, before the graph is read as a whole.
    let samplers = |g: &Graph| NeighborSampler::new(g, [3, 2]).unwrap();
    let batch = |g: &Graph| samplers(g).sample([("_N", [1, 5])], SampleKey::new(3)).unwrap();
    let (a, b) = (batch(&memory), batch(file));
    let original = |ids: &[u32]| -> Vec<u64> {
        ids.iter().map(|&e| if of.ids { kept[e as usize].2 } else { u64::from(e) }).collect()
    };
    for (a, b) in a.blocks.iter().zip(&b.blocks) {
        prop_assert_eq!((a.src_nodes(0), a.in_degrees(0)), (b.src_nodes(0), b.in_degrees(0)));
        prop_assert_eq!(b.original_edge_ids(0).to_vec(), original(a.edge_ids(0)));
        prop_assert_eq!(a.edge_ids(0), b.edge_ids(0));
    }
    let excluded: Vec<u32> = (0..kept.len() as u32).step_by(3).collect();
    for key in 0..3 {
        for excluded in [&[][..], &excluded] {
            prop_assert_eq!(
                blocks(&samplers(&memory), key, excluded),
                blocks(&samplers(file), key, excluded)
            );
        }
    }
    if of.weights {
        let weights: Vec<f32> = kept.iter().map(|e| e.3).collect();
        let weighted = |s: NeighborSampler| s.with_strategy(Strategy::Weighted).unwrap();
        let a = weighted(samplers(&memory).with_weights("_E", &weights).unwrap());
        let b = weighted(samplers(file).with_stored_weights("_E").unwrap());
        prop_assert_eq!(blocks(&a, 9, &excluded), blocks(&b, 9, &excluded));
    }
    // A frontier has the sampled edges by their ids.
    let frontier = |g: &Graph| batch(g).blocks[0].to_frontier().unwrap();
    let (a, b) = (frontier(&memory), frontier(file));
    prop_assert_eq!(&a.edge_ids, &b.edge_ids);
    prop_assert!(a.graph.relations() == b.graph.relations());

    // Read into memory.
    s.read_stored().unwrap();
    prop_assert!(s == m, "{:?}: {:?} {:?}", of, s.src(), s.dst());
    prop_assert_eq!((s.csc(), s.csr()), (m.csc(), m.csr()));
    let ids: Vec<u64> = (0..kept.len() as u64).collect();
    let found = s.original_edge_ids().unwrap().unwrap_or(&ids);
    prop_assert_eq!(found, original(&(0..kept.len() as u32).collect::<Vec<_>>()));

    // Walks, and edges as seeds with negatives.
    let starts: Vec<u32> = (0..NODES).collect();
    let walks = |g: &Graph| {
        RandomWalk::new(g, &["_E"; 4]).unwrap().walk(&starts, 2, SampleKey::new(1)).unwrap()
    };
    prop_assert_eq!(walks(&memory), walks(file));
    if kept.len() > 2 {
        let links = |g: &Graph| {
            let links = LinkSampler::new(samplers(g), "_E").unwrap();
            let batch = links.sample(&[0, 2], SampleKey::new(4)).unwrap();
            let block = &batch.batch.blocks[0];
            let pairs = (batch.positive.src.clone(), batch.positive.dst.clone());
            (pairs, block.edge_ids(0).to_vec(), block.src_nodes(0).to_vec())
        };
        prop_assert_eq!(links(&memory), links(file));
    }

    // Features of all edges of the stream, by original id.
    let stream: Vec<f32> = (0..edges.len() + NODES as usize).map(|i| i as f32).collect();
    let source = MemoryRows::new(&stream, 1, RowType::F32).unwrap();
    let rows: Vec<u32> = found.iter().map(|&id| id as u32).collect();
    let source = source.with_id2index(rows).unwrap();
    for block in &batch(file).blocks {
        let x = source.gather(block.edge_ids(0)).unwrap();
        let ids = block.original_edge_ids(0);
        prop_assert_eq!(x, ids.iter().map(|&id| id as f32).collect::<Vec<_>>());
    }

    // Renumbered, by original ids.
    if of.ids {
        let order: Vec<u32> = (0..NODES).map(|v| (v * 5 + 3) % NODES).collect();
        let order = Arc::new(Renumbering::new(order).unwrap());
        let renumbered =
            RenumberedEdges::new(Full(edges.to_vec(), 0), order.clone(), order.clone());
        if !matches!(of.loops, SelfLoops::Add | SelfLoops::Replace) {
            build(&dir.path().join("new"), of).run(renumbered).unwrap();
            let new =
                StoredGraph::create(dir.path(), [("_N", NODES as usize)], [(TYPE, "new")]).unwrap();
            let new = new.by_original_ids([("_N", order)]).unwrap();
            prop_assert_eq!(blocks(&samplers(&memory), 5, &[]), blocks(&samplers(&new), 5, &[]));
            // Functions that need all edges return an error.
            if !kept.is_empty() {
                let walked =
                    RandomWalk::new(&new, &["_E"]).unwrap().walk(&[0], 1, SampleKey::new(1));
                let sampler = samplers(&new);
                let without =
                    sampler.sample_excluding([("_N", [0])], [("_E", [0])], SampleKey::new(1));
                for e in [walked.map(drop), without.map(drop)].map(Result::unwrap_err) {
                    let is_layout_error = matches!(e, GraphError::Layout { .. });
                    prop_assert!(is_layout_error, "{e}");
                }
            }
            let read = new.relation("_E").unwrap().read_stored();
            let is_layout_error = matches!(read, Err(GraphError::Layout { .. }));
            prop_assert!(is_layout_error || kept.is_empty(), "{:?}", read);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]

    #[test]
    fn any_options_are_the_kept_edges(edges in proptest::collection::vec((0..NODES, 0..NODES), 0..60)) {
        for options in all_options() {
            compare(&edges, options)?;
        }
    }
}

/// The smallest graphs with a dropped edge.
#[test]
fn small_graphs() {
    for edges in [
        &[][..],
        &[(0, 1), (0, 1), (1, 0)],
        &[(0, 1), (0, 1)],
        &[(3, 3), (0, 1)],
        &[(3, 3)],
        &[(1, 0), (3, 3), (3, 3), (0, 1), (0, 0)],
    ] {
        for options in all_options() {
            compare(edges, options).unwrap_or_else(|e| panic!("{edges:?}, {options:?}: {e}"));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let options =
        Options { loops: SelfLoops::Keep, simple: true, ids: true, weights: false, times: false };
    let stored = open(dir.path(), &[(0, 1), (0, 1), (1, 0)], options);
    let relation = stored.graph().relation("_E").unwrap();
    assert_eq!((relation.src(), relation.dst()), (&[0, 1][..], &[1, 0][..]));
    assert_eq!(relation.original_edge_ids().unwrap(), Some(&[0, 2][..]));
}
