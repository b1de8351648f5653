use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::Device;
use burn_gnn_graph::{GraphError, Stream};
use burn_gnn_sampling::{NeighborSampler, SampleKey};

use super::*;

fn graph() -> Graph {
    let draws = Stream::new(3, "topology", 0);
    let ids = |column: u64, n: u32| {
        (0..400).map(|i| (draws.uniform(i, column) * f64::from(n)) as u32).collect::<Vec<_>>()
    };
    let b = Graph::builder().nodes("a", 50).nodes("b", 20).nodes("empty", 0);
    let b = b.edges(("a", "r", "b"), ids(0, 50), ids(1, 20)).edges(
        ("b", "s", "a"),
        ids(2, 20),
        ids(3, 50),
    );
    b.edges(("a", "none", "empty"), vec![], vec![])
        .edges(("a", "sorted", "a"), vec![4, 1], vec![0, 3])
        .build()
        .unwrap()
}

#[test]
fn graph_and_samples_are_the_same_in_memory_and_mapped() {
    let (dir, g) = (tempfile::tempdir().unwrap(), graph());
    let file = dir.path().join("g");
    Topology::write(&g, &file).unwrap();
    for placement in [Placement::Memory, Placement::Mapped] {
        let t = Topology::open(&file, placement.clone()).unwrap();
        assert_eq!(
            (t.placement(), t.bytes()),
            (placement.clone(), std::fs::metadata(&file).unwrap().len())
        );
        assert_eq!((t.graph().schema(), t.graph().node_counts()), (g.schema(), g.node_counts()));
        for (a, b) in t.graph().relations().iter().zip(g.relations()) {
            assert_eq!((a, a.csc(), a.csr()), (b, b.csc(), b.csr()));
            let mapped = placement == Placement::Mapped;
            assert_eq!(
                (a.is_mapped(), a.reverse().is_mapped(), b.is_mapped()),
                (mapped, mapped, false)
            );
        }
        let sample = |g: &Graph| {
            NeighborSampler::new(g, [3, 2])
                .unwrap()
                .sample([("a", [7, 1]), ("b", [0, 9])], SampleKey::new(5))
                .unwrap()
        };
        let (of_file, of_memory) = (sample(t.graph()), sample(&g));
        for (a, b) in of_file.blocks.iter().zip(&of_memory.blocks) {
            assert_eq!(
                (0..3).map(|n| a.src_nodes(n)).collect::<Vec<_>>(),
                (0..3).map(|n| b.src_nodes(n)).collect::<Vec<_>>()
            );
            assert_eq!(
                (0..4).map(|e| a.edge_ids(e)).collect::<Vec<_>>(),
                (0..4).map(|e| b.edge_ids(e)).collect::<Vec<_>>()
            );
        }
    }
    // A new file does not disturb what is open.
    let open = Topology::open(&file, Placement::Mapped).unwrap();
    Topology::write(&Graph::homogeneous(1, vec![], vec![]).unwrap(), &file).unwrap();
    assert_eq!(open.graph().relations(), g.relations());
}

#[test]
fn every_wrong_number_is_found() {
    let (dir, g) = (tempfile::tempdir().unwrap(), graph());
    let file = dir.path().join("g");
    Topology::write(&g, &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // Every number of every array one more; the edges are random, so that no other graph comes out.
    for at in (data..bytes.len()).step_by(4) {
        let mut wrong = bytes.clone();
        let word = u32::from_le_bytes(wrong[at..at + 4].try_into().unwrap());
        wrong[at..at + 4].copy_from_slice(&word.wrapping_add(1).to_le_bytes());
        std::fs::write(&file, wrong).unwrap();
        for placement in [Placement::Memory, Placement::Mapped] {
            let e = Topology::open(&file, placement).map(|_| ()).unwrap_err();
            assert!(
                matches!(
                    e.cause(),
                    DataError::Format { .. } | DataError::Graph(GraphError::NodeOutOfRange { .. })
                ),
                "{at}: {e}"
            );
        }
    }
    // Truncated anywhere, or with bytes after the end.
    let longer = [&bytes[..], &[0; 4]].concat();
    for wrong in [&bytes[..0], &bytes[..7], &bytes[..20], &bytes[..bytes.len() - 4], &longer] {
        std::fs::write(&file, wrong).unwrap();
        for placement in [Placement::Memory, Placement::Mapped] {
            let e = Topology::open(&file, placement).unwrap_err();
            assert!(
                matches!(e, DataError::Format { .. }) && e.to_string().contains("Topology::write"),
                "{e}"
            );
        }
    }
    assert!(matches!(
        Topology::open(dir.path().join("other"), Placement::Memory),
        Err(DataError::Io { .. })
    ));
    let e = Topology::open(&file, Placement::Device(Device::flex())).unwrap_err();
    assert!(matches!(e, DataError::Graph(GraphError::Setting { arg: "placement", .. })), "{e}");
}

/// Of a file that is in memory nothing is left to read: it may go.
#[test]
fn a_file_in_memory_may_be_cut_short() {
    let (dir, g) = (tempfile::tempdir().unwrap(), graph());
    let file = dir.path().join("g");
    Topology::write(&g, &file).unwrap();
    let t = Topology::open(&file, Placement::Memory).unwrap();
    let cut = File::options().write(true).open(&file).unwrap();
    // No lock is held either.
    assert!(!matches!(cut.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
    cut.set_len(0).unwrap();
    for (a, b) in t.graph().relations().iter().zip(g.relations()) {
        assert_eq!((a, a.csc(), a.csr()), (b, b.csc(), b.csr()));
    }
}

/// Whatever is written over a mapped file: what unsafe code relies on is as it was checked, and safe code finds
/// other nodes or panics.
#[cfg(not(windows))]
#[test]
fn a_mapped_file_that_is_overwritten() {
    let (dir, g) = (tempfile::tempdir().unwrap(), graph());
    let file = dir.path().join("g");
    for garbage in [0, 1, u32::MAX] {
        Topology::write(&g, &file).unwrap();
        let t = Topology::open(&file, Placement::Mapped).unwrap();
        let words = std::fs::metadata(&file).unwrap().len() as usize / 4;
        let same = File::options().write(true).open(&file).unwrap();
        std::io::Write::write_all(&mut &same, bytemuck::cast_slice(&vec![garbage; words])).unwrap();
        for (a, b) in t.graph().relations().iter().zip(g.relations()) {
            for (a, b) in [(a.csc(), b.csc()), (a.csr(), b.csr())] {
                assert_eq!((a.indptr(), a.edge_ids()), (b.indptr(), b.edge_ids()));
                assert!(
                    a.indices().iter().all(|&node| node == garbage),
                    "nodes are those of the file"
                );
            }
            assert!(a.src().iter().chain(a.dst()).all(|&node| node == garbage));
            // What is derived from a changed file is that file's, or a panic.
            let sorted = catch_unwind(AssertUnwindSafe(|| a.sorted_by_dst().src().to_vec()));
            assert!(
                sorted.map_or(garbage == u32::MAX, |src| src.len() == b.num_edges()),
                "{garbage}"
            );
        }
        let sampler = NeighborSampler::new(t.graph(), [3, 2]).unwrap();
        for key in 0..20 {
            let sample =
                || sampler.sample([("a", [7, 1]), ("b", [0, 9])], SampleKey::new(key)).unwrap();
            if let Ok(batch) = catch_unwind(AssertUnwindSafe(sample)) {
                for block in &batch.blocks {
                    for (t, r) in block.relations().iter().enumerate() {
                        let nodes = block.src_nodes(block.schema().endpoints(t).0).len();
                        assert!(r.src().iter().all(|&row| (row as usize) < nodes), "{garbage}");
                    }
                }
            }
        }
    }
}

/// Without its checksum, and with another count, which only the checksum shows; the header stays as long as it is.
#[test]
fn a_description_without_checksum() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("g");
    let g = Graph::builder()
        .nodes("idle", 7)
        .edges(("a", "r", "a"), vec![2, 0], vec![0, 1])
        .build()
        .unwrap();
    Topology::write(&g, &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let start = text.find(r#"\"checksum\""#).unwrap();
    let entry = &text[start..start + text[start..].find(',').unwrap() + 1];
    let refused = |changes: &[(&str, &str)], expected: &str| {
        let mut wrong = bytes.clone();
        for (from, to) in changes {
            let at = wrong.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
            wrong[at..at + from.len()].copy_from_slice(format!("{to:<0$}", from.len()).as_bytes());
        }
        std::fs::write(&file, wrong).unwrap();
        let e = Topology::open(&file, Placement::Memory).unwrap_err();
        assert!(e.to_string().contains(expected), "{e}");
    };
    let count = (r#"[\"idle\",7]"#, r#"[\"idle\",8]"#);
    refused(&[count], "a wrong checksum");
    refused(&[(entry, "")], "missing field `checksum`");
    refused(&[(entry, ""), count], "missing field `checksum`");
    let version = (r#"\"format_version\":2"#, r#"\"format_version\":1"#);
    refused(&[version], "format version 1, this program reads version 2; write it again");
    refused(
        &[version, (entry, "")],
        "format version 1, this program reads version 2; write it again",
    );
}

/// Names and counts of types that have no edges stand in the description alone.
#[test]
fn no_changed_byte_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("g");
    let g = Graph::builder()
        .nodes("a", 3)
        .nodes("idle", 7)
        .edges(("a", "r", "a"), vec![2, 0, 0], vec![0, 1, 2])
        .build()
        .unwrap();
    Topology::write(&g, &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    for at in 0..bytes.len() {
        for byte in [bytes[at] ^ 1, b'0' + (bytes[at].wrapping_add(1)) % 10] {
            let mut wrong = bytes.clone();
            wrong[at] = byte;
            std::fs::write(&file, wrong).unwrap();
            if let Ok(t) = Topology::open(&file, Placement::Memory) {
                assert_eq!(
                    (t.graph().schema(), t.graph().node_counts()),
                    (g.schema(), g.node_counts()),
                    "byte {at}"
                );
                assert_eq!(t.graph().relations(), g.relations(), "byte {at}");
            }
        }
    }
}

/// Data of several times the memory that a process has.
#[cfg(target_os = "linux")]
mod limited {
    use super::*;
    use burn_gnn_sampling::RowType;
    use burn_gnn_sampling::{FeatureSource, MappedRows, TieredRows, write_rows};

    use crate::{NpyHead, load_graph, read_npy, save_graph};

    /// KiB of memory that the test below gives this process; each of the files is some times larger.
    const MEMORY: usize = 32 << 10;
    /// Edges of each node: as many sources and destinations in turn, so that edges are sorted by both endpoints.
    const DEGREE: usize = 132;
    const NODES: usize = 50_000;
    /// Rows of features, and numbers in each.
    const ROWS: [usize; 2] = [400_000, 64];
    const DIR: &str = "BURN_GNN_TEST_LARGE_FILES";

    fn large_graph() -> Graph {
        let edges = NODES * DEGREE;
        let ids = |shift: usize| {
            (0..edges).map(|e| ((e + shift) / DEGREE).min(NODES - 1) as u32).collect()
        };
        Graph::homogeneous(NODES, ids(DEGREE / 2), ids(0)).unwrap()
    }

    /// Run by the test below.
    #[test]
    #[ignore = "wants files and a limit on memory"]
    fn files_larger_than_memory() {
        let dir = PathBuf::from(std::env::var(DIR).unwrap());
        let (file, rows) = (dir.join("topology"), dir.join("rows.npy"));
        // The limit is one: none of the files can be read.
        for result in
            [Topology::open(&file, Placement::Memory).map(drop), read_npy(&rows).map(drop)]
        {
            let e = result.unwrap_err();
            let out_of_memory = matches!(e.cause(), DataError::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory);
            assert!(out_of_memory, "{e}");
        }
        let topology = Topology::open(&file, Placement::Mapped).unwrap();
        let sampler = NeighborSampler::new(topology.graph(), [5, 5]).unwrap();
        let mapped = MappedRows::open(&rows).unwrap();
        let order: Vec<u32> = (0..ROWS[0] as u32).step_by(100).collect();
        let tiered =
            TieredRows::with_ratio(MappedRows::open(&rows).unwrap(), &order, 0.01).unwrap();
        for step in 0..100 {
            let seeds: Vec<u32> = (0..64).map(|i| (step * 499 + i * 7) % NODES as u32).collect();
            let batch =
                sampler.sample([("_N", &seeds)], SampleKey::new(1).at(0, u64::from(step))).unwrap();
            for block in &batch.blocks {
                let (src, dst, edges) =
                    (block.src_nodes(0), block.dst_nodes(0), &block.relations()[0]);
                for e in 0..edges.num_edges() {
                    let (u, v) = (src[edges.src()[e] as usize], dst[edges.dst()[e] as usize]);
                    assert!(u == v || u == (v + 1).min(NODES as u32 - 1), "{u} -> {v}");
                }
            }
            let ids: Vec<u32> =
                batch.input_nodes(0).iter().map(|v| v * (ROWS[0] / NODES) as u32).collect();
            for x in [mapped.gather(&ids).unwrap(), tiered.gather(&ids).unwrap()] {
                assert!(
                    x.chunks(ROWS[1])
                        .zip(&ids)
                        .all(|(row, &id)| row[0] == id as f32 && row[1..] == [0.0; ROWS[1] - 1])
                );
            }
        }
        // Writers stream: a copy of the structure in either form, and of the rows in another type.
        Topology::write(topology.graph(), dir.join("copy")).unwrap();
        save_graph(topology.graph(), dir.join("saved")).unwrap();
        write_rows(dir.join("narrow"), &mapped, RowType::BF16).unwrap();
        assert_eq!(
            MappedRows::open(dir.join("narrow")).unwrap().gather(&[16 << 8]).unwrap()[0],
            f32::from(16u16 << 8)
        );
    }

    /// Data of several times the memory that a process has: structure and features mapped, sampled, gathered and
    /// written.
    ///
    /// The limit is that on data (`RLIMIT_DATA`: all memory but what is mapped from files), since that on addresses
    /// counts mapped files as well.
    #[test]
    fn larger_than_memory() {
        let dir = tempfile::tempdir().unwrap();
        let (file, rows) = (dir.path().join("topology"), dir.path().join("rows.npy"));
        Topology::write(&large_graph(), &file).unwrap();
        // A file of holes, but for the rows that are read.
        let head = NpyHead::bytes("<f4", &ROWS);
        let (mut features, size) =
            (File::create(&rows).unwrap(), (head.len() + 4 * ROWS[0] * ROWS[1]) as u64);
        std::io::Write::write_all(&mut features, &head).unwrap();
        features.set_len(size).unwrap();
        for id in (0..ROWS[0]).step_by(ROWS[0] / NODES) {
            let at = (head.len() + 4 * ROWS[1] * id) as u64;
            std::os::unix::fs::FileExt::write_all_at(&features, &(id as f32).to_le_bytes(), at)
                .unwrap();
        }
        for bytes in [size, std::fs::metadata(&file).unwrap().len()] {
            assert!(bytes > 3 * 1024 * MEMORY as u64, "{bytes} bytes");
        }
        let run = format!(
            "ulimit -d {MEMORY} && exec \"$0\" --exact --ignored saved::topology::tests::limited::files_larger_than_memory"
        );
        let mut child = std::process::Command::new("sh");
        // A thread has a stack, of which a large machine would have many.
        let child = child
            .args(["-c", &run])
            .arg(std::env::current_exe().unwrap())
            .env(DIR, dir.path())
            .env("RAYON_NUM_THREADS", "2");
        let out = child.output().unwrap();
        assert!(
            out.status.success() && String::from_utf8_lossy(&out.stdout).contains("1 passed"),
            "{out:?}"
        );
        let original = std::fs::read(&file).unwrap();
        assert!(
            original == std::fs::read(dir.path().join("copy")).unwrap(),
            "a copy is the same file"
        );
        let saved = load_graph(dir.path().join("saved"), &burn::tensor::Device::flex()).unwrap();
        assert_eq!(saved.relations(), large_graph().relations());
    }
}
