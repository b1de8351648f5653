//! Parts that are cut from a file.

use std::sync::Arc;

use burn_gnn_store::*;
use burn_gnn_structure::EdgeReader;
use proptest::prelude::*;

type Edges = Vec<(u32, u32)>;

fn build(dir: &std::path::Path, n: usize, edges: &Edges) -> Arc<StoredCsc> {
    let path = dir.join("csc");
    CscBuild::new(&path, n, n).run(EdgeIter::new(edges.clone())).unwrap();
    StoredCsc::open(&path).unwrap()
}

/// LDG and Fennel by definition, over all edges at every node.
fn by_definition(
    n: usize,
    edges: &Edges,
    parts: usize,
    method: StreamMethod,
    passes: usize,
) -> Vec<u32> {
    let mean = n as f64 / parts as f64;
    let most = ((mean * 1.05) as usize).max(n.div_ceil(parts));
    let range = |v: u32| v as usize * parts / n;
    let between = edges.iter().filter(|e| range(e.0) != range(e.1)).count() as f64;
    let local = between < 0.8 * (1.0 - 1.0 / parts as f64) * edges.len() as f64;
    let mut part: Vec<Option<usize>> = (0..n as u32).map(|v| local.then(|| range(v))).collect();
    for _ in 0..passes {
        let mut sizes = vec![0usize; parts];
        for v in 0..n {
            let score = |p: usize| {
                let neighbours = edges
                    .iter()
                    .filter(|e| {
                        e.1 as usize == v && e.0 as usize != v && part[e.0 as usize] == Some(p)
                    })
                    .count() as f64;
                let fill = sizes[p] as f64 / mean;
                let score = match method {
                    StreamMethod::Ldg => neighbours * (1.0 - fill / 1.05).max(0.0),
                    _ => neighbours - 0.75 * edges.len() as f64 / n as f64 * fill.sqrt(),
                };
                (score, -fill)
            };
            let best =
                (0..parts).filter(|&p| sizes[p] < most).fold(None, |best: Option<usize>, p| {
                    match best {
                        Some(b) if score(p) <= score(b) => Some(b),
                        _ => Some(p),
                    }
                });
            sizes[best.unwrap()] += 1;
            part[v] = best;
        }
    }
    let cut = edges.iter().filter(|e| part[e.0 as usize] != part[e.1 as usize]).count() as f64;
    let ranges = local && cut >= between;
    (0..n as u32)
        .zip(part)
        .map(|(v, p)| if ranges { range(v) as u32 } else { p.unwrap() as u32 })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn as_defined(n in 1usize..60, edges in proptest::collection::vec((0u32..60, 0u32..60), 0..300), parts in 1usize..5, passes in 1usize..4) {
        let edges: Edges = edges.into_iter().filter(|e| (e.0 as usize) < n && (e.1 as usize) < n).collect();
        let dir = tempfile::tempdir().unwrap();
        let csc = build(dir.path(), n, &edges);
        for method in [StreamMethod::Ldg, StreamMethod::Fennel] {
            let of = StreamCut::new(parts).with_method(method).with_passes(passes).assign(&csc).unwrap();
            prop_assert_eq!(of.part_of(), by_definition(n, &edges, parts, method, passes));
            let cut = edges.iter().filter(|e| of.part_of()[e.0 as usize] != of.part_of()[e.1 as usize]).count();
            prop_assert_eq!(of.cut(&csc).unwrap(), cut as f64 / edges.len().max(1) as f64);
            let written = of.write(&csc, dir.path().join("parts")).unwrap();
            written.verify(&csc).unwrap();
            let opened = StoredParts::open(dir.path().join("parts")).unwrap();
            prop_assert_eq!((opened.parts(), opened.bytes()), (parts, written.bytes()));
            let mut nodes: Vec<u32> = vec![];
            for p in 0..parts {
                nodes.extend(opened.part(p).unwrap().inner());
            }
            nodes.sort_unstable();
            prop_assert_eq!(nodes, (0..n as u32).collect::<Vec<_>>());
        }
    }
}

/// Communities are found: far fewer edges between parts than in a random cut, under the bound on sizes.
#[test]
fn communities() {
    let dir = tempfile::tempdir().unwrap();
    let (n, of) = (8000u32, 8);
    let hash = |x: u32| (x.wrapping_mul(2_654_435_761) ^ 0x9e37).wrapping_mul(0x85eb_ca6b) >> 8;
    // Communities as ranges of ids, and dealt over all ids.
    for (dealt, most) in [(false, 0.2), (true, 0.8)] {
        let edges: Edges = (0..n * 12)
            .map(|i| {
                let (v, any) = (i % n, hash(i + 7));
                let inside = if dealt {
                    any % (n / of) * of + v % of
                } else {
                    v / (n / of) * (n / of) + any % (n / of)
                };
                (if hash(i) % 10 < 9 { inside } else { hash(i + 13) % n }, v)
            })
            .collect();
        let csc = build(dir.path(), n as usize, &edges);
        for method in [StreamMethod::Ldg, StreamMethod::Fennel] {
            let parts = StreamCut::new(4).with_method(method).with_passes(5).assign(&csc).unwrap();
            let (cut, random) = (parts.cut(&csc).unwrap(), 0.75);
            println!("{method:?}, dealt {dealt}: {cut}");
            assert!(cut < most * random, "{method:?}, dealt {dealt}: {cut}");
            assert!(parts.sizes().iter().all(|&s| s <= 2100), "{:?}", parts.sizes());
        }
    }
}

/// What `verify` finds: an edge of another node, a node in two parts, a changed byte.
#[test]
fn wrong_parts() {
    let dir = tempfile::tempdir().unwrap();
    let edges: Edges = (0..400u32).map(|i| (i * 7 % 50, i % 50)).collect();
    let csc = build(dir.path(), 50, &edges);
    let parts = dir.path().join("parts");
    let of = |second: bool| {
        Assignment::new(
            (0..50).map(|v| u32::from(v % 2 == 1) ^ u32::from(second && v == 7)).collect(),
            2,
        )
        .unwrap()
    };
    let written = of(false).write(&csc, &parts).unwrap();
    written.verify(&csc).unwrap();
    // The parts of another graph.
    let other: Edges = (0..400u32).map(|i| (i * 3 % 50, i % 50)).collect();
    let path = dir.path().join("other");
    CscBuild::new(&path, 50, 50).run(EdgeIter::new(other)).unwrap();
    let e = written.verify(&StoredCsc::open(&path).unwrap()).unwrap_err();
    assert!(e.to_string().contains("expected the in-edges of the graph"), "{e}");
    // Part 1 of another cut: node 7 is in both.
    let save = ["nodes", "csc"].map(|f| {
        (
            parts.join(format!("part-00000.{f}")),
            std::fs::read(parts.join(format!("part-00000.{f}"))).unwrap(),
        )
    });
    of(true).write(&csc, &parts).unwrap();
    written.verify(&csc).unwrap();
    save.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    let e = written.verify(&csc).unwrap_err();
    assert!(e.to_string().contains("node 7: expected in one part, found in none"), "{e}");
    of(false).write(&csc, &parts).unwrap();
    let file = parts.join("part-00001.nodes");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096 + 3] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert!(matches!(written.verify(&csc), Err(StoreError::Damaged { .. })));
    assert!(StreamCut::new(0).assign(&csc).is_err() && Assignment::new(vec![2], 2).is_err());
    assert!(csc.num_edges() == 400);
}

/// Parts of an older cut in the folder are no parts of this one, and the two files of a part are of one cut.
#[test]
fn parts_of_two_cuts_are_not_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let csc = build(dir.path(), 6, &vec![(0, 1), (2, 3), (4, 5), (1, 0)]);
    let parts = dir.path().join("parts");
    Assignment::new(vec![0, 1, 2, 3, 0, 1], 4).unwrap().write(&csc, &parts).unwrap();
    let old = std::fs::read(parts.join("part-00001.nodes")).unwrap();
    std::fs::write(parts.join("part-list.csc"), "not a part").unwrap();
    Assignment::new(vec![0, 1, 0, 1, 0, 1], 2).unwrap().write(&csc, &parts).unwrap();
    assert!(StoredPart::open(&parts, 1).is_ok() && StoredPart::open(&parts, 2).is_err());
    assert_eq!(std::fs::read_dir(&parts).unwrap().count(), 5);
    std::fs::write(parts.join("part-00001.nodes"), old).unwrap();
    let e = StoredPart::open(&parts, 1).unwrap_err().to_string();
    assert!(e.contains("one partitioning"), "{e}");
}

#[test]
fn assignments_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bipartite");
    CscBuild::new(&path, 100, 10).run(EdgeIter::new([(99, 3)])).unwrap();
    let bipartite = StoredCsc::open(&path).unwrap();
    let of = Assignment::new(vec![0; 10], 1).unwrap();
    assert!(
        of.write(&bipartite, dir.path().join("parts"))
            .unwrap_err()
            .to_string()
            .contains("one node type")
    );
    assert!(of.cut(&bipartite).is_err());
    let csc = build(dir.path(), 4, &vec![(0, 1)]);
    assert!(of.cut(&csc).unwrap_err().to_string().contains("the parts of 4 nodes"));
}
