//! Built files equal the relations of the same edges in memory.

use std::sync::Arc;

use burn_gnn_store::*;
use burn_gnn_structure::{EdgeReader, GraphError, Relation};
use proptest::prelude::*;

type Edges = Vec<(u32, u32)>;
/// Source, edge id, weight and time of every edge of a row.
type Row = Vec<(u32, u64, Option<f32>, Option<i64>)>;

fn memory(num_src: usize, num_dst: usize, edges: &Edges) -> Relation {
    let (src, dst) = edges.iter().copied().unzip();
    Relation::from_coo(num_src, num_dst, src, dst).unwrap()
}

/// A stream of edges with unique weights and times.
struct Full(Edges, usize);

fn weight(i: usize) -> f32 {
    i as f32 + 0.5
}
fn time(i: usize) -> i64 {
    1000 - i as i64
}

impl EdgeStream for Full {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let n = most.min(self.0.len() - self.1).min(1000);
        for i in self.1..self.1 + n {
            chunk.src.push(self.0[i].0);
            chunk.dst.push(self.0[i].1);
            chunk.weights.push(weight(i));
            chunk.times.push(time(i));
        }
        self.1 += n;
        Ok(n)
    }
}

/// Every row of a file: sources, edge ids, weights and times.
fn rows(stored: &Arc<StoredCsc>) -> Vec<Row> {
    let mut all = vec![];
    for v in 0..stored.num_dst() as u32 {
        let (start, len) = stored.row(v).unwrap();
        let range = start..start + u64::from(len);
        let positions: Vec<u64> = range.clone().collect();
        let (mut src, mut ids, mut weights, mut times) =
            (vec![0; positions.len()], vec![0; positions.len()], vec![], vec![]);
        stored.sources(&positions, &mut src).unwrap();
        stored.edge_ids(&positions, &mut ids).unwrap();
        let (w, t) = (
            stored.weights_of(range.clone(), &mut weights).unwrap(),
            stored.times_of(range, &mut times).unwrap(),
        );
        all.push(
            (0..positions.len())
                .map(|i| (src[i], ids[i], w.then(|| weights[i]), t.then(|| times[i])))
                .collect(),
        );
    }
    all
}

/// The expected rows by definition.
fn expected(n: usize, edges: &Edges, loops: SelfLoops, simple: bool) -> Vec<Row> {
    let (removes, adds) = (
        matches!(loops, SelfLoops::Remove | SelfLoops::Replace),
        matches!(loops, SelfLoops::Add | SelfLoops::Replace),
    );
    (0..n as u32)
        .map(|v| {
            let mut row: Row = vec![];
            for (i, &(src, dst)) in edges.iter().enumerate().filter(|(_, e)| e.1 == v) {
                let dropped = removes && src == dst || simple && row.iter().any(|e| e.0 == src);
                row.extend((!dropped).then(|| (src, i as u64, Some(weight(i)), Some(time(i)))));
            }
            row.extend(
                adds.then(|| (v, (edges.len() + v as usize) as u64, Some(1.0), Some(i64::MIN))),
            );
            row
        })
        .collect()
}

fn edges() -> impl Strategy<Value = (usize, usize, Edges)> {
    let many = prop_oneof![0usize..60, 3000usize..4000];
    (1usize..700, 1usize..700, many).prop_flat_map(|(a, b, n)| {
        // Half of the edges lead to one node: a row that exceeds the memory of a small build.
        let dst = prop_oneof![0..b as u32, Just(b as u32 / 2)];
        (Just(a), Just(b), proptest::collection::vec((0..a as u32, dst), n))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For random graphs with parallel edges and self loops, with minimal and ample memory, the file equals the
    /// relation in memory.
    #[test]
    fn equal_to_memory((num_src, num_dst, edges) in edges(), ids in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let of = memory(num_src, num_dst, &edges);
        let mut files = vec![];
        for bytes in [4 << 20, 64 << 20] {
            let path = dir.path().join("csc");
            let build = CscBuild::new(&path, num_src, num_dst).with_memory(bytes);
            let build = if ids { build.with_edge_ids() } else { build };
            let stats = build.run(EdgeIter::new(edges.clone())).unwrap();
            prop_assert_eq!((stats.read, stats.edges, stats.resumed), (edges.len() as u64, edges.len() as u64, 0));
            prop_assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "what is temporary is gone");
            let stored = StoredCsc::open(&path).unwrap();
            stored.verify().unwrap();
            let r = stored.relation().unwrap();
            prop_assert_eq!((r.csc().indptr(), r.csc().indices()), (of.csc().indptr(), of.csc().indices()));
            if ids {
                prop_assert_eq!((&r, r.csr()), (&of, of.csr()));
            }
            files.push(std::fs::read(&path).unwrap());
        }
        prop_assert!(files[0] == files[1], "the file does not depend on memory");
    }

    #[test]
    fn loops_and_parallel_edges(edges in proptest::collection::vec((0u32..40, 0u32..40), 0..3000), simple in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        for loops in [SelfLoops::Keep, SelfLoops::Remove, SelfLoops::Add, SelfLoops::Replace] {
            let path = dir.path().join("csc");
            let build = CscBuild::new(&path, 40, 40).with_edge_ids().with_weights().with_times().with_self_loops(loops);
            let build = if simple { build.with_simple() } else { build };
            build.run(Full(edges.clone(), 0)).unwrap();
            let stored = StoredCsc::open(&path).unwrap();
            stored.verify().unwrap();
            prop_assert_eq!(rows(&stored), expected(40, &edges, loops, simple));
        }
    }
}

/// Enough edges for several runs, and for rows that exceed the minimal memory, with all columns.
#[test]
fn many_runs_and_long_rows() {
    let dir = tempfile::tempdir().unwrap();
    let n = 70_000u32;
    // Two thirds lead to four nodes of one bucket, one of which has a third of all edges.
    let edges: Edges = (0..600_000u32)
        .map(|i| {
            let h = i.wrapping_mul(2_654_435_761) >> 7;
            (
                h % n,
                if i % 3 == 0 {
                    777
                } else if i % 3 == 1 {
                    770 + h % 4
                } else {
                    (h >> 3) % n
                },
            )
        })
        .collect();
    let plenty = dir.path().join("plenty");
    let with = |path: &std::path::Path, bytes: u64, simple: bool| {
        let build = CscBuild::new(path, n as usize, n as usize)
            .with_memory(bytes)
            .with_edge_ids()
            .with_weights()
            .with_times();
        let build = build.with_self_loops(SelfLoops::Add);
        if simple { build.with_simple() } else { build }.run(Full(edges.clone(), 0)).unwrap()
    };
    for simple in [false, true] {
        with(&plenty, 1 << 30, simple);
        let small = dir.path().join("small");
        let stats = with(&small, 4 << 20, simple);
        assert!(stats.temporary == 600_000 * 22, "{stats:?}");
        assert!(std::fs::read(&plenty).unwrap() == std::fs::read(&small).unwrap());
        let stored = StoredCsc::open(&small).unwrap();
        stored.verify().unwrap();
        let (start, len) = stored.row(777).unwrap();
        let positions: Vec<u64> = (start..start + u64::from(len)).collect();
        let mut ids = vec![0; positions.len()];
        stored.edge_ids(&positions, &mut ids).unwrap();
        assert!(
            ids.is_sorted()
                && ids.last() == Some(&(600_000 + 777))
                && ids[1] == if simple { ids[1] } else { 3 }
        );
        if !simple {
            assert_eq!(len as usize, 1 + edges.iter().filter(|e| e.1 == 777).count());
        }
    }
}

#[test]
fn errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let build = CscBuild::new(&path, 3, 4);
    let e = build.run(EdgeIter::new([(0, 0), (2, 3), (3, 0)])).unwrap_err();
    assert!(
        matches!(e, StoreError::NodeOutOfRange { edge: 2, arg: "src", bound: 3, value: 3 }),
        "{e}"
    );
    let e = build.run(EdgeIter::new([(0, 4)])).unwrap_err();
    assert!(
        matches!(e, StoreError::NodeOutOfRange { edge: 0, arg: "dst", bound: 4, value: 4 }),
        "{e}"
    );
    assert!(matches!(
        build.clone().with_memory(1000).run(EdgeIter::new([])),
        Err(StoreError::Memory { given: 1000, .. })
    ));
    let loops = build.clone().with_self_loops(SelfLoops::Add).run(EdgeIter::new([]));
    assert!(matches!(loops, Err(StoreError::Graph(e)) if matches!(*e, GraphError::Setting { .. })));
    assert!(matches!(
        build.clone().with_weights().run(EdgeIter::new([(0, 0)])),
        Err(StoreError::Resume { .. })
    ));
    std::fs::remove_dir_all(dir.path().join("csc.building")).unwrap();
    assert!(matches!(
        build.clone().with_weights().run(EdgeIter::new([(0, 0)])),
        Err(StoreError::Source(_))
    ));
    assert!(!path.exists());
}

/// Every changed byte is detected, by `verify` and by the first read of its block.
#[test]
fn damaged_and_truncated_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let edges: Edges = (0..100_000u32).map(|i| (i % 500, i * 31 % 1000)).collect();
    CscBuild::new(&path, 500, 1000).run(EdgeIter::new(edges)).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let damaged = |at: usize| {
        let mut wrong = bytes.clone();
        wrong[at] ^= 4;
        std::fs::write(&path, wrong).unwrap();
        StoredCsc::open(&path)
    };
    // In the header, the offsets, the third block of sources, the checksums.
    assert!(matches!(damaged(40), Err(StoreError::Damaged { section, .. }) if section == "header"));
    let e = damaged(4096 + 80).unwrap().verify().unwrap_err();
    assert!(
        matches!(&e, StoreError::Damaged { section, block: 0, .. } if section == "indptr"),
        "{e}"
    );
    let sources = 4096 + 8192;
    assert!(damaged(4096 + 80).unwrap().row(10).is_err());
    let stored = damaged(sources + 2 * 65_536 + 5).unwrap();
    let e = stored.verify().unwrap_err();
    assert!(
        matches!(&e, StoreError::Damaged { section, block: 2, .. } if section == "sources"),
        "{e}"
    );
    assert!(e.to_string().contains("csc: block 2 of `sources`"), "{e}");
    let mut out = [0];
    stored.sources(&[16_384], &mut out).unwrap();
    let e = stored.sources(&[40_000], &mut out).unwrap_err();
    assert!(e.to_string().contains("block 2 of `sources`"), "{e}");
    assert!(stored.relation().unwrap().read_stored().is_err());
    let e = damaged(bytes.len() - 3).unwrap().verify().unwrap_err();
    assert!(
        matches!(&e, StoreError::Damaged { section, block: 6, .. } if section == "sources"),
        "{e}"
    );
    for len in [0, 100, 4095, 4096, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..len]).unwrap();
        let e = StoredCsc::open(&path).unwrap_err();
        assert!(
            matches!(e, StoreError::Truncated { found, .. } if found == len as u64),
            "{len}: {e}"
        );
    }
    std::fs::write(&path, b"something else entirely".repeat(1000)).unwrap();
    assert!(matches!(StoredCsc::open(&path), Err(StoreError::Data(_))));
}

/// Edges of text, of `.npy` files, reversed and chained.
#[test]
fn streams() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let indices = |stream: &mut dyn FnMut() -> Box<dyn EdgeStream>| {
        CscBuild::new(&path, 4, 4).run(stream()).unwrap();
        let r = StoredCsc::open(&path).unwrap().relation().unwrap();
        (r.src().to_vec(), r.dst().to_vec())
    };
    let text = "# a comment\n0\t1\n\n2,0;0.5\r\n 1 1 3\n";
    let of_text = indices(&mut || Box::new(TextEdges::new("edges.txt", text.as_bytes())));
    assert_eq!(of_text, (vec![2, 0, 1], vec![0, 1, 1]));
    let npy = |name: &str, shape: &[usize], ids: &[i64]| {
        let bytes = ids.iter().flat_map(|v| v.to_le_bytes());
        let path = dir.path().join(name);
        std::fs::write(
            &path,
            burn_gnn_files::NpyHead::bytes("<i8", shape)
                .into_iter()
                .chain(bytes)
                .collect::<Vec<u8>>(),
        )
        .unwrap();
        path
    };
    let (src, dst) = (npy("src", &[3], &[0, 2, 1]), npy("dst", &[3], &[1, 0, 1]));
    assert_eq!(indices(&mut || Box::new(NpyEdges::of_two(&src, &dst).unwrap())), of_text);
    let both = npy("both", &[2, 3], &[0, 2, 1, 1, 0, 1]);
    assert_eq!(indices(&mut || Box::new(NpyEdges::of_one(&both).unwrap())), of_text);
    // `numpy.save(path, numpy.array([[0, 1], [2, 0], [1, 1]], descr).T)`: pairs, in Fortran order.
    let transposed = |descr: &str, pairs: &[u8]| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': (2, 3), }}\n");
        let head = [b"\x93NUMPY\x01\x00", &[text.len() as u8, 0][..], text.as_bytes()].concat();
        let path = dir.path().join("transposed");
        std::fs::write(&path, [&head, pairs].concat()).unwrap();
        path
    };
    for path in [
        transposed("|u1", &[0, 1, 2, 0, 1, 1]),
        transposed(">u2", &[0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 1]),
        transposed("<i2", &[0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 1, 0]),
        transposed("<i8", bytemuck::cast_slice(&[0i64, 1, 2, 0, 1, 1])),
    ] {
        assert_eq!(indices(&mut || Box::new(NpyEdges::of_one(&path).unwrap())), of_text);
    }
    let reversed = indices(&mut || Box::new(ReversedEdges(NpyEdges::of_one(&both).unwrap())));
    assert_eq!(reversed, (vec![1, 1, 0], vec![0, 1, 2]));
    let chained = || {
        ChainedEdges(
            NpyEdges::of_one(&both).unwrap(),
            ReversedEdges(NpyEdges::of_one(&both).unwrap()),
        )
    };
    assert_eq!(
        indices(&mut || Box::new(chained())),
        (vec![2, 1, 0, 1, 1, 0], vec![0, 0, 1, 1, 1, 2])
    );
    let e = CscBuild::new(&path, 4, 4)
        .run(NpyEdges::of_one(npy("far", &[2, 1], &[-1, 0])).unwrap())
        .unwrap_err();
    let far = "far: edge 0: expected `src` in 0..4294967296, found -1";
    assert!(matches!(e, StoreError::Data(_)) && e.to_string().ends_with(far), "{e}");
    let no_node = NpyEdges::of_one(npy("no-node", &[2, 2], &[0, 1, 1, 4])).unwrap();
    let e = CscBuild::new(&path, 4, 4).run(no_node).unwrap_err().to_string();
    assert!(e.contains("no-node: edge 1: `dst` must lie in 0..4, got 4"), "{e}");
    let e =
        CscBuild::new(&path, 4, 4).run(TextEdges::new("edges.txt", &b"0 1\n0 x"[..])).unwrap_err();
    assert!(e.to_string().starts_with("edges.txt:2:2: expected a node id"), "{e}");
    let weighted = TextEdges::new("edges.txt", &b"0 1 2.5\n3 1 0"[..]).with_weights();
    std::fs::remove_dir_all(dir.path().join("csc.building")).unwrap();
    CscBuild::new(&path, 4, 4).with_weights().run(weighted).unwrap();
    let mut weights = vec![];
    assert!(
        StoredCsc::open(&path).unwrap().weights_of(0..2, &mut weights).unwrap()
            && weights == [2.5, 0.0]
    );
}

/// Nodes and positions out of range are errors of every method that name the value and the file.
#[test]
fn wrong_nodes_and_positions_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    for full in [false, true] {
        let build = CscBuild::new(&path, 5, 3);
        let build = if full { build.with_edge_ids().with_weights().with_times() } else { build };
        build.run(Full(vec![(0, 1), (4, 2), (3, 1)], 0)).unwrap();
        let csc = StoredCsc::open(&path).unwrap();
        for v in [3, 4, u32::MAX] {
            let (one, several) = (csc.row(v).map(drop), csc.rows(&[0, v], &mut vec![]));
            for e in [one.map_err(GraphError::from), several].map(Result::unwrap_err) {
                assert!(
                    matches!(&e, GraphError::IdOutOfRange { id, bound: 3, .. } if *id == u64::from(v))
                );
                assert!(e.to_string().contains("csc: destination id "), "{e}");
            }
        }
        for p in [3, 4, 1 << 40, u64::MAX] {
            let mut found = vec![
                csc.sources(&[0, p], &mut [0, 0]),
                csc.sources_of(p..p.saturating_add(1), &mut vec![]),
            ];
            if full {
                found.push(csc.edge_ids(&[p, 1], &mut [0, 0]));
                found.push(
                    csc.edge_ids_of(1..p.max(4), &mut vec![]).map(drop).map_err(GraphError::from),
                );
                found.push(
                    csc.times_of(0..p.max(4), &mut vec![]).map(drop).map_err(GraphError::from),
                );
                found.push(csc.weights_of(2..p.max(4), &mut vec![]).map(drop));
            }
            for (i, e) in found.into_iter().map(Result::unwrap_err).enumerate() {
                let is_range = matches!(&e, GraphError::IdOutOfRange { bound: 3, .. });
                assert!(is_range && e.to_string().contains("csc: position id "), "{p}, {i}: {e}");
            }
        }
        let turned = std::ops::Range { start: 2, end: 1 };
        let e = csc.sources_of(turned.clone(), &mut vec![]).unwrap_err();
        assert!(e.to_string().contains("expected an ascending range, found 2..1"), "{e}");
        if full {
            assert!(csc.times_of(turned, &mut vec![]).is_err());
        }
        // Ranges up to the end, and an empty range at the end.
        let (mut all, mut none) = (vec![], vec![]);
        csc.sources_of(0..3, &mut all).unwrap();
        csc.sources_of(3..3, &mut none).unwrap();
        assert_eq!((all, none), (vec![0, 3, 4], vec![]));
    }
}

/// Memory that only suffices for offsets is an error that names a sufficient amount.
#[test]
fn too_little_memory_for_the_nodes_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let build = |memory| {
        CscBuild::new(dir.path().join("csc"), 111_059_956, 111_059_956).with_memory(memory)
    };
    let StoreError::Memory { least, .. } = build(8 << 20).plan(1_615_685_872).unwrap_err() else {
        panic!("expected an error")
    };
    assert!(least > 8 << 20 && build(least).plan(1_615_685_872).is_ok());
}

/// The file of a build that drops most edges is as long as its content.
#[test]
fn simple_files_are_short() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let stats = CscBuild::new(&path, 10, 10)
        .with_simple()
        .run(EdgeIter::new((0..1_000_000).map(|e| (e % 3, e % 7))))
        .unwrap();
    assert_eq!((stats.edges, stats.bytes), (21, std::fs::metadata(&path).unwrap().len()));
    assert!(stats.bytes < 20_000, "{}", stats.bytes);
    StoredCsc::open(&path).unwrap().verify().unwrap();
}

/// More than 2^32 edges in one relation. Takes half an hour in a debug build and 30 GB of disk.
#[test]
#[ignore = "takes minutes and 30 GB of disk; run it in release"]
fn more_edges_than_32_bits_count() {
    const NODES: u64 = 1 << 20;
    let edges = (1u64 << 32) + (1 << 27);
    let src = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as u32;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csc");
    let began = std::time::Instant::now();
    let build = CscBuild::new(&path, NODES as usize, NODES as usize).with_memory(256 << 20);
    let stats = build.run(EdgeIter::new((0..edges).map(|i| (src(i), (i % NODES) as u32)))).unwrap();
    assert_eq!(stats.edges, edges);
    println!("{} edges in {:?}, {} bytes", stats.edges, began.elapsed(), stats.bytes);
    let csc = StoredCsc::open(&path).unwrap();
    let each = edges / NODES;
    for v in [0, 1, 77_777, NODES - 2, NODES - 1] {
        let (start, len) = csc.row(v as u32).unwrap();
        assert_eq!((start, u64::from(len)), (v * each, each));
        let mut row = vec![];
        csc.sources_of(start..start + each, &mut row).unwrap();
        assert!(
            row.iter().zip((v..).step_by(NODES as usize)).all(|(&u, i)| u == src(i)),
            "row {v}"
        );
    }
    // Sampled edges with positions beyond 2^32 are edges of the graph.
    #[cfg(feature = "sampling")]
    {
        use burn_gnn_sampling::{NeighborSampler, SampleKey};
        StoredGraph::create(dir.path(), [("_N", NODES as usize)], [(("_N", "_E", "_N"), "csc")])
            .unwrap();
        let g = StoredGraph::open(dir.path()).unwrap();
        let seeds: Vec<u32> = (NODES as u32 - 64..NODES as u32).collect();
        let batch = NeighborSampler::new(g.graph(), [10])
            .unwrap()
            .sample([("_N", &seeds[..])], SampleKey::new(0))
            .unwrap();
        let block = &batch.blocks[0];
        assert_eq!(block.total_edges(), 640);
        assert!(block.original_edge_ids(0).iter().all(|&id| id > u64::from(u32::MAX)));
        let (nodes, relation) = (block.src_nodes(0), &block.relations()[0]);
        for (e, &id) in block.original_edge_ids(0).iter().enumerate() {
            let (v, k) = (id / each, id % each);
            assert_eq!(
                (nodes[relation.dst()[e] as usize], nodes[relation.src()[e] as usize]),
                (v as u32, src(v + k * NODES))
            );
        }
    }
}
