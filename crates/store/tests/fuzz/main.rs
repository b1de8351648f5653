//! Many damaged files of this crate: every reader returns a value or an error, never panics, and needs time and memory
//! that are bounded by the size of the files.
//!
//! Two kinds of damage, both functions of the number of the case. Damaged bytes: reading returns an error or the
//! written data, since every block has a checksum. Damaged structure: other values in headers, descriptions, sections
//! and journals, with updated checksums, so that the data after them is read. `BURN_GNN_FUZZ=100000` damages so many
//! files of each reader, a few hundred by default; `BURN_GNN_FUZZ_BYTES=100000000` writes so many bytes over all
//! readers, four million by default. `BURN_GNN_FUZZ_READER=rows` runs only the readers whose names start with this.

// For the graph and the batches of samplers.
#![cfg(all(unix, feature = "sampling"))]

mod form;
#[path = "../../../data/tests/fuzz/watchdog.rs"]
mod watchdog;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_gnn_graph::Graph;
use burn_gnn_sampling::{NeighborSampler, SampleKey};
use burn_gnn_store::{
    Assignment, CscBuild, EdgeChunk, EdgeIter, EdgeStream, PackedBatches, PackedRows, RawNumbers,
    Renumbering, RowFormat, RowWriter, SelfLoops, StoreError, StoredCsc, StoredGraph, StoredParts,
    StoredRows,
};
use burn_gnn_structure::EdgeReader;
use burn_gnn_testutil::counting_allocator::CountingAllocator;
use burn_gnn_testutil::damage::Damage;
use watchdog::Worst;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Readers that [`readers`] runs, among which the bytes of structured damage are divided.
const READERS: usize = 11;
static CALLED: AtomicUsize = AtomicUsize::new(0);

const NODES: usize = 40;
const EDGES: u32 = 500;
/// A file may declare any number of nodes. Up to this number, functions that allocate memory per node are called.
const MANY: usize = 1 << 16;
const TYPE: (&str, &str, &str) = ("_N", "_E", "_N");

/// Bytes of memory that a reader may take: for any file, and for each byte of it. `docs/reliability.md` has the same
/// numbers.
fn limit(reader: &str) -> (usize, usize) {
    match reader {
        // Buffers of the resumed build.
        "journal" => (16 << 20, 4),
        // A relation for every few bytes of a description.
        "graph" | "parts" => (8 << 20, 128),
        _ => (8 << 20, 4),
    }
}

/// A resumed build reads and writes megabytes in addition to its journal, so it gets fewer cases.
fn cost(reader: &str) -> u64 {
    if reader == "journal" { 15 } else { 1 }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// A stream of edges with weights and times.
struct Edges(u32);

impl EdgeStream for Edges {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let n = (most as u32).min(EDGES - self.0);
        for i in self.0..self.0 + n {
            chunk.src.push(i.wrapping_mul(2_654_435_761) % NODES as u32);
            chunk.dst.push(i * 7 % NODES as u32);
            chunk.weights.push(i as f32);
            chunk.times.push(-i64::from(i));
        }
        self.0 += n;
        Ok(n as usize)
    }
}

fn build(path: &Path, full: bool) -> CscBuild {
    let build = CscBuild::new(path, NODES, NODES).with_memory(4 << 20);
    match full {
        true => build
            .with_edge_ids()
            .with_weights()
            .with_times()
            .with_simple()
            .with_self_loops(SelfLoops::Remove),
        false => build,
    }
}

/// All results of a reader, as bytes.
type Content = Vec<u8>;

fn put<T: bytemuck::Pod>(out: &mut Content, numbers: &[T]) {
    out.extend_from_slice(bytemuck::cast_slice(numbers));
}

/// Reads every row of a file by every method, and the whole file into memory.
fn csc(path: &Path) -> Result<Content, StoreError> {
    let csc = StoredCsc::open(path)?;
    let (mut out, count) = (vec![], csc.num_edges());
    for v in 0..(csc.num_dst() as u32).min(1000) {
        let (start, len) = csc.row(v)?;
        let positions: Vec<u64> = (start..start + u64::from(len)).collect();
        let (mut src, mut ids) = (vec![0; positions.len()], vec![0; positions.len()]);
        csc.sources(&positions, &mut src)?;
        csc.edge_ids(&positions, &mut ids)?;
        put(&mut out, &src);
        put(&mut out, &ids);
    }
    let (mut ids, mut weights, mut times) = (vec![], vec![], vec![]);
    csc.edge_ids_of(0..count, &mut ids)?;
    csc.weights_of(0..count, &mut weights)?;
    csc.times_of(0..count, &mut times)?;
    put(&mut out, &ids);
    put(&mut out, &weights);
    put(&mut out, &times);
    drop((ids, weights, times));
    let relation = csc.relation()?;
    if csc.num_src().max(csc.num_dst()) > MANY {
        return Err(StoreError::source("layouts in memory take 4 bytes per node"));
    }
    relation.read_stored()?;
    put(&mut out, relation.src());
    put(&mut out, relation.original_edge_ids()?.unwrap_or_default());
    csc.verify()?;
    Ok(out)
}

fn graph(dir: &Path) -> Result<Content, StoreError> {
    let stored = StoredGraph::open(dir)?;
    let graph = stored.graph();
    let ntypes = graph.schema().ntypes().len();
    let mut out = vec![ntypes as u8];
    let sampler = NeighborSampler::new(graph, [3, 2])?;
    if graph.node_counts().iter().any(|&n| n > MANY) {
        return Err(StoreError::source("a sampler takes 4 bytes per node"));
    }
    let of = (0..ntypes).find(|&t| graph.node_counts()[t] > 0);
    if let Some(t) = of {
        let batch = sampler.sample([(t, [0])], SampleKey::new(1))?;
        put(&mut out, batch.input_nodes(t));
    }
    stored.verify()?;
    Ok(out)
}

fn rows(path: &Path) -> Result<Content, StoreError> {
    let rows = StoredRows::open(path)?;
    rows.verify()?;
    let ids: Vec<u32> = (0..rows.num_rows().min(1000) as u32).rev().collect();
    let (mut out, mut numbers) = (vec![], 0);
    // Some rows at a time, as f32.
    for ids in ids.chunks((100_000 / rows.width().max(1)).max(1)) {
        let some = rows.gather(ids)?;
        numbers += some.len();
        if numbers < 100_000 {
            put(&mut out, &some);
        }
        if rows.width() > 1 << 20 {
            break;
        }
    }
    Ok(out)
}

/// Batches of edges in a file that is not damaged.
fn parts(dir: &Path, whole: &StoredCsc) -> Result<Content, StoreError> {
    let parts = StoredParts::open(dir)?;
    let mut out = vec![];
    for p in 0..parts.parts().min(10) {
        let part = parts.part(p)?;
        for t in 0..part.schema().ntypes().len() {
            put(&mut out, part.inner(t));
            put(&mut out, part.halo(t));
            put(&mut out, part.owners(t));
        }
        for e in 0..part.schema().etypes().len() {
            let (_, d) = part.schema().endpoints(e);
            for v in 0..part.inner(d).len() as u32 {
                let (start, len) = part.whole_row(e, v)?;
                put(&mut out, &[start, len.into()]);
            }
            let relation = part.relation(e)?;
            let reader = relation.stored().unwrap();
            let mut found = vec![];
            reader.rows(part.inner(d), &mut found)?;
            for (start, len) in found {
                let positions: Vec<u64> = (start..start + u64::from(len)).collect();
                let (mut src, mut ids) = (vec![0; positions.len()], vec![0; positions.len()]);
                reader.sources(&positions, &mut src)?;
                reader.edge_ids(&positions, &mut ids)?;
                put(&mut out, &src);
                put(&mut out, &ids);
            }
        }
        part.subgraph()?;
    }
    parts.verify(whole)?;
    Ok(out)
}

fn batch_ids(i: u32) -> Vec<u32> {
    vec![i % 40, (i + 7) % 40, 39 - i % 5]
}

fn packed_rows(path: &Path) -> Result<Content, StoreError> {
    let packed = PackedRows::open(path)?;
    packed.verify()?;
    let mut out = vec![];
    for i in 0..packed.batches().min(5) {
        put(&mut out, &packed.gather(i, &batch_ids(i as u32))?);
    }
    Ok(out)
}

fn packed_batches(path: &Path, sampler: &NeighborSampler) -> Result<Content, StoreError> {
    let packed = PackedBatches::open(path)?;
    packed.rows().verify()?;
    let mut out = vec![];
    for i in 0..packed.batches().min(5) {
        let batch = packed.load(i, sampler)?;
        put(&mut out, batch.batch.input_nodes(0));
        put(&mut out, &batch.rows);
    }
    Ok(out)
}

fn numbering(path: &Path) -> Result<Content, StoreError> {
    let numbers = RawNumbers::<u64>::open(path)?;
    let ids: Vec<u64> =
        (0..numbers.len() as u32).map(|i| numbers.id(i)).collect::<Result<_, _>>()?;
    let mut out = vec![];
    put(&mut out, &ids);
    put(&mut out, &numbers.numbers(&ids)?);
    Ok(out)
}

fn renumbering(path: &Path) -> Result<Content, StoreError> {
    let of = Renumbering::open(path)?;
    let mut out = vec![];
    put(&mut out, of.original_ids());
    put(&mut out, of.new_ids());
    Ok(out)
}

/// Damages the files in turn: reads and repairs each. `prepare` creates the files that a reader changes. Changed bytes
/// are detected, so results without an error equal the written data.
fn fuzz(
    name: &str,
    files: &[PathBuf],
    prepare: impl Fn(),
    read: impl Fn() -> Result<Content, StoreError>,
) {
    CALLED.fetch_add(1, Ordering::Relaxed);
    if std::env::var("BURN_GNN_FUZZ_READER").is_ok_and(|only| !name.starts_with(&only)) {
        return;
    }
    prepare();
    let whole: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(f).unwrap()).collect();
    let total: usize = whole.iter().map(Vec::len).sum();
    let right = read().unwrap_or_else(|e| panic!("{name}: undamaged: {e}"));
    let repair = |at: usize| {
        // A finished build has removed its journal.
        if files[at].exists() {
            std::fs::write(&files[at], &whole[at]).unwrap();
        }
    };
    let mut bytes = Worst::default();
    for case in 0..setting("BURN_GNN_FUZZ").unwrap_or(300).div_ceil(cost(name)) {
        prepare();
        let mut damage = Damage::new(case);
        let at = damage.below(files.len());
        let spoilt = damage.spoil(&whole[at]);
        std::fs::write(&files[at], &spoilt).unwrap();
        bytes.read(name, case, total + spoilt.len(), limit(name), || match read() {
            Ok(found) => {
                assert!(found == right, "{name}, case {case}: read other content");
                true
            }
            Err(e) => {
                assert!(!e.to_string().is_empty());
                false
            }
        });
        repair(at);
    }
    assert!(bytes.accepted < bytes.cases, "{name}: damage is too weak to show anything");
    let budget = setting("BURN_GNN_FUZZ_BYTES").unwrap_or(4_000_000) / READERS as u64;
    let budget = budget / cost(name);
    let mut inside = Worst::default();
    while inside.bytes < budget {
        prepare();
        let case = inside.cases;
        let mut damage = Damage::new(case.wrapping_add(1 << 40));
        let at = damage.below(files.len());
        let made = form::damaged(&whole[at], &mut damage);
        std::fs::write(&files[at], &made).unwrap();
        inside.bytes += made.len().max(1) as u64;
        inside.read(name, case, total + made.len(), limit(name), || read().is_ok());
        repair(at);
    }
    println!(
        "{name:<15} {:>7} bytes damaged, {:>6} read | {:>9} bytes of {:>6} structures, {:>6} read | at most {} bytes",
        bytes.cases,
        bytes.accepted,
        inside.bytes,
        inside.cases,
        inside.accepted,
        bytes.most.max(inside.most)
    );
}

// One test on one thread, so that no other thread's memory is counted.
#[test]
fn every_reader() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(readers);
    assert_eq!(CALLED.load(Ordering::Relaxed), READERS, "`READERS` counts them");
}

fn readers() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    let one = |path: &Path| vec![path.to_owned()];
    for (name, full) in [("csc", false), ("csc full", true)] {
        let path = dir.join(name);
        build(&path, full).run(Edges(0)).unwrap();
        fuzz(name, &one(&path), || (), || csc(&path));
    }
    let folder = dir.join("graph");
    std::fs::create_dir(&folder).unwrap();
    build(&folder.join("a"), true).run(Edges(0)).unwrap();
    build(&folder.join("b"), false).run(Edges(0)).unwrap();
    let relations = [(TYPE, "a"), (("_N", "other", "_N"), "b")];
    StoredGraph::create(&folder, [("_N", NODES)], relations).unwrap();
    let files = ["graph.json", "graph.json", "a", "b"].map(|f| folder.join(f));
    fuzz("graph", &files, || (), || graph(&folder));
    for format in [RowFormat::F16, RowFormat::Int4] {
        let path = dir.join(format!("rows {format:?}"));
        let mut out = RowWriter::create(&path, NODES, 5, format).unwrap();
        out.put(&(0..5 * NODES).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        out.finish().unwrap();
        fuzz(path.file_name().unwrap().to_str().unwrap(), &one(&path), || (), || rows(&path));
    }
    let folder = dir.join("parts");
    let whole = StoredCsc::open(dir.join("csc full")).unwrap();
    let part_of = (0..NODES as u32).map(|v| v % 2).collect();
    Assignment::new(part_of, 2).unwrap().write(&whole, &folder).unwrap();
    let files = ["part-00000.nodes", "part-00000.0.csc", "part-00001.nodes", "part-00001.0.csc"];
    fuzz("parts", &files.map(|f| folder.join(f)), || (), || parts(&folder, &whole));
    let (path, source) = (dir.join("packed"), StoredRows::open(dir.join("rows F16")).unwrap());
    PackedRows::write(&path, &source, 300, || (0..5).map(|i| Ok(batch_ids(i)))).unwrap();
    fuzz("packed rows", &one(&path), || (), || packed_rows(&path));
    let graph = Graph::homogeneous(
        NODES,
        (0..EDGES).map(|i| i % NODES as u32).collect(),
        (0..EDGES).map(|i| i * 7 / 3 % NODES as u32).collect(),
    );
    let sampler = NeighborSampler::new(&graph.unwrap(), [2, 2]).unwrap();
    let sample = |i: u32| -> Result<_, StoreError> {
        let batch = sampler.sample([("_N", [i])], SampleKey::new(i.into()))?;
        let ids = batch.input_nodes(0).to_vec();
        Ok((batch, ids))
    };
    let path = dir.join("batches");
    PackedBatches::write(&path, &source, 300, || (0..5).map(sample)).unwrap();
    fuzz("packed batches", &one(&path), || (), || packed_batches(&path, &sampler));
    let path = dir.join("ids");
    let ids = (0..300u64).map(|i| Ok(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7));
    RawNumbers::build(&path, 1 << 20, ids).unwrap();
    fuzz("numbering", &one(&path), || (), || numbering(&path));
    let path = dir.join("nodes");
    let order = (0..300).map(|v| v * 7 % 300).collect();
    Renumbering::new(order).unwrap().write(&path).unwrap();
    fuzz("renumbering", &one(&path), || (), || renumbering(&path));
    journal(dir);
}

/// A damaged journal of an unfinished build: resuming returns an error or the right file.
fn journal(dir: &Path) {
    const NODES: u32 = 2000;
    let (path, kept, folder) = (dir.join("csc.j"), dir.join("kept"), dir.join("csc.j.building"));
    let run = || {
        let edges = (0..420_000u32).map(|i| (i.wrapping_mul(2_654_435_761) % NODES, i * 7 % NODES));
        let build = CscBuild::new(&path, NODES as usize, NODES as usize);
        build.with_memory(4 << 20).with_edge_ids().run(EdgeIter::new(edges))
    };
    // A byte of the last edges of the last run: everything before is in the result and in the journal.
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(folder.join("csc")).unwrap();
    assert!(run().is_err(), "the result cannot be written");
    std::fs::remove_dir(folder.join("csc")).unwrap();
    let mut runs: Vec<PathBuf> = burn_gnn_testutil::faults::files(&folder);
    runs.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("run-"));
    let last = runs.pop().unwrap();
    let bytes = std::fs::read(&last).unwrap();
    let mut wrong = bytes.clone();
    let buckets = NODES as usize / 256 + 1;
    wrong[bytes.len() - 8 * (2 * buckets + 2) - 1] ^= 1;
    std::fs::write(&last, wrong).unwrap();
    assert!(matches!(run(), Err(StoreError::Damaged { .. })));
    std::fs::write(&last, bytes).unwrap();
    let text = std::fs::read_to_string(folder.join("journal")).unwrap();
    assert!(text.matches("Run").count() > 2 && text.contains("Merged"), "{text}");
    std::fs::rename(&folder, &kept).unwrap();
    let prepare = || {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        for entry in std::fs::read_dir(&kept).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    };
    fuzz("journal", &[folder.join("journal")], prepare, || {
        run()?;
        StoredCsc::open(&path)?.verify()?;
        Ok(std::fs::read(&path).unwrap())
    });
}
