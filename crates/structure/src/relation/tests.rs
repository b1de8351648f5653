use super::checks::LIMIT;
use super::compress::{PARALLEL_FROM, compress};
use super::{Relation, WholeNumber};
use crate::error::graph_error::GraphError;
use proptest::prelude::*;

fn edges() -> impl Strategy<Value = (usize, usize, Vec<(u32, u32)>)> {
    (1usize..20, 1usize..20).prop_flat_map(|(a, b)| {
        (Just(a), Just(b), proptest::collection::vec((0..a as u32, 0..b as u32), 0..80))
    })
}

proptest! {
    #[test]
    fn layouts_agree((ns, nd, e) in edges()) {
        let (src, dst): (Vec<_>, Vec<_>) = e.iter().copied().unzip();
        let r = Relation::from_coo(ns, nd, src, dst).unwrap();
        let c = r.csc();
        for v in 0..nd {
            let want: Vec<_> = e.iter().enumerate().filter(|(_, x)| x.1 as usize == v).map(|(i, x)| (i as u32, x.0)).collect();
            let got: Vec<_> = c.row(v).map(|p| (c.edge_id(p), c.indices()[p])).collect();
            prop_assert_eq!(want, got);
        }
        let again = Relation::from_csc(ns, nd, c.indptr(), c.indices(), c.edge_ids()).unwrap();
        prop_assert_eq!(&again, &r);
        let c = r.csr();
        let again = Relation::from_csr(ns, nd, c.indptr(), c.indices(), c.edge_ids()).unwrap();
        prop_assert_eq!(&again, &r);
        let reversed = r.reverse();
        prop_assert_eq!(reversed.csr(), r.csc());
        prop_assert_eq!(&reversed.reverse(), &r);
    }
}

#[test]
fn parallel_sort_is_stable_for_any_thread_count() {
    let e = 3 * PARALLEL_FROM;
    let key: Vec<u32> = (0..e).map(|i| (i as u32).wrapping_mul(2_654_435_761) % 1000).collect();
    let other: Vec<u32> = (0..e as u32).collect();
    let run = |n| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build()
            .unwrap()
            .install(|| compress(1000, &key, &other))
    };
    let one = run(1);
    assert!(one.edge_ids().unwrap().windows(2).zip(one.indices().windows(2)).all(|(a, b)| a == b));
    for n in [2, 3, 7] {
        assert!(run(n) == one, "{n} threads");
    }
}

/// Few edges between many nodes are sorted by comparison, with the same result, including parallel edges.
#[test]
fn comparison_sort_equals_counting_sort() {
    for e in [2, 7, 3 * PARALLEL_FROM as u32] {
        let key: Vec<u32> = (0..e).map(|i| i.wrapping_mul(7) % 4 * e).collect();
        let other: Vec<u32> = (0..e).map(|i| i.wrapping_mul(5) % e).collect();
        let (few, many) = (
            compress(3 * e as usize + 1, &key, &other),
            compress(4 * e as usize + 1, &key, &other),
        );
        assert_eq!((few.indices(), few.edge_ids()), (many.indices(), many.edge_ids()));
        assert_eq!(few.indptr(), &many.indptr()[..few.indptr().len()]);
    }
}

/// A temporary layout equals the cached one; a reversed relation has the other layout.
#[test]
fn with_csc_builds_a_temporary_layout() {
    let r = Relation::from_coo(3, 2, vec![2, 0, 2], vec![1, 0, 0]).unwrap();
    for r in [r.clone(), r.reverse()] {
        let again = || {
            Relation::from_coo(r.num_src(), r.num_dst(), r.src().to_vec(), r.dst().to_vec())
                .unwrap()
        };
        for (r, kept) in [
            (r.clone(), again().csc().indptr().to_vec()),
            (r.reverse(), again().csr().indptr().to_vec()),
        ] {
            assert_eq!(
                r.with_csc(|l| (l.indptr().to_vec(), l.edge_ids().is_some())),
                (kept, r.csc_has_edge_ids())
            );
        }
    }
    let fresh = Relation::from_coo(3, 2, vec![2, 0, 2], vec![1, 0, 0]).unwrap();
    fresh.with_csc(|l| assert_eq!(l.indices(), [0, 2, 2]));
    assert!(fresh.csc_has_edge_ids() && fresh.csc_cell().get().is_none());
}

#[test]
fn sorted_edges_need_no_permutation() {
    let r = Relation::from_coo(3, 3, vec![2, 1, 0], vec![0, 1, 1]).unwrap();
    assert_eq!(r.csc().edge_ids(), None);
    assert_eq!(r.csr().edge_ids(), Some(&[2, 1, 0][..]));
}

#[test]
fn refusals_name_place_bound_and_value() {
    let text = |r: Result<Relation, GraphError>| r.unwrap_err().in_relation("a:b:c").to_string();
    let t = text(Relation::from_coo(3, 3, vec![0, 3], vec![0, 0]));
    assert_eq!(
        t,
        "relation `a:b:c`, position 1: `src` must lie in 0..3, got 3; number nodes from 0, or give the graph more nodes"
    );
    let t = text(Relation::from_coo_i64(3, 3, &[0, 1], &[0, -1]));
    assert_eq!(
        t,
        "relation `a:b:c`, position 1: `dst` must lie in 0..3, got -1; number nodes from 0, or give the graph more nodes"
    );
    let t = text(Relation::from_coo(3, 3, vec![0, 1], vec![0]));
    assert_eq!(
        t,
        "`dst` of relation `a:b:c`: expected length 2 (one entry per entry of `src`), got 1; give 2 entries"
    );
    let csr = |p: &[u32], i: &[u32], e: Option<&[u32]>| text(Relation::from_csr(2, 2, p, i, e));
    assert_eq!(
        csr(&[0, 1], &[0], None),
        "`indptr` of relation `a:b:c`: expected length 3 (number of rows + 1), got 2; give 3 entries"
    );
    assert_eq!(
        csr(&[1, 1, 1], &[0], None),
        "relation `a:b:c`: `indptr[0]` must be 0, got 1; compute `indptr` as the cumulative sum of the row lengths, from 0"
    );
    assert_eq!(
        csr(&[0, 2, 1], &[0], None),
        "relation `a:b:c`: `indptr[2]` must be at least 2 (it must never decrease), got 1; \
         compute `indptr` as the cumulative sum of the row lengths, from 0"
    );
    assert_eq!(
        csr(&[0, 1, 3], &[0], None),
        "relation `a:b:c`: `indptr[2]` must be 1 (the length of `indices`), got 3; \
         compute `indptr` as the cumulative sum of the row lengths, from 0"
    );
    assert_eq!(
        csr(&[0, 1, 2], &[0, 5], None),
        "relation `a:b:c`, position 1: `indices` must lie in 0..2, got 5; number nodes from 0, or give the graph more nodes"
    );
    let twice = csr(&[0, 1, 2], &[0, 1], Some(&[1, 1]));
    assert_eq!(
        twice,
        "relation `a:b:c`, position 1: `edge_ids` must be a permutation of 0..2, got 1 a second time; give every edge id once"
    );
    let far = csr(&[0, 1, 2], &[0, 1], Some(&[0, 2]));
    assert_eq!(
        far,
        "relation `a:b:c`, position 1: `edge_ids` must be a permutation of 0..2, got 2; give every edge id once"
    );
    let t = text(Relation::from_coo(u32::MAX as usize, 1, vec![], vec![]));
    assert!(t.contains("exceed the limit"), "{t}");
    let t = text(Relation::from_csr(2, 2, &[0i64, -1, 1], &[0u64], None));
    assert_eq!(
        t,
        "relation `a:b:c`: `indptr[1]` must be at least 0 (it must never decrease), got -1; \
         compute `indptr` as the cumulative sum of the row lengths, from 0"
    );
    let t = text(Relation::from_csr(2, 2, &[0u64, 1, 1 << 40], &[0u32], None));
    assert_eq!(
        t,
        "relation `a:b:c`: `indptr[2]` must be 1 (the length of `indices`), got 1099511627776; \
         compute `indptr` as the cumulative sum of the row lengths, from 0"
    );
    let t = text(Relation::from_csc(2, 2, &[0usize, 1, 2], &[0i64, -3], None));
    assert_eq!(
        t,
        "relation `a:b:c`, position 1: `indices` must lie in 0..2, got -3; number nodes from 0, or give the graph more nodes"
    );
}

/// Offsets and nodes of every type make the same relation, edge ids or not.
#[test]
fn any_integer_type() {
    fn of<P: WholeNumber, I: WholeNumber>(indptr: &[P], indices: &[I]) -> [Relation; 4] {
        let ids = Some(&[2, 0, 1][..]);
        [
            Relation::from_csr(2, 3, indptr, indices, None).unwrap(),
            Relation::from_csc(3, 2, indptr, indices, None).unwrap(),
            Relation::from_csr(2, 3, indptr, indices, ids).unwrap(),
            Relation::from_csc(3, 2, indptr, indices, ids).unwrap(),
        ]
    }
    let expected = of(&[0u32, 1, 3], &[2u32, 0, 1]);
    assert_eq!((expected[2].src(), expected[2].dst()), (&[1, 1, 0][..], &[0, 1, 2][..]));
    assert_eq!(of(&[0u64, 1, 3], &[2i64, 0, 1]), expected);
    assert_eq!(of(&[0i64, 1, 3], &[2u64, 0, 1]), expected);
    assert_eq!(of(&[0usize, 1, 3], &[2i32, 0, 1]), expected);
}

/// Run by the test below.
#[test]
#[ignore = "wants a limit on memory"]
fn a_relation_of_most_nodes() {
    let most = LIMIT as usize;
    for (src, dst) in [(most, 1), (1, most)] {
        let e = Relation::from_coo(src, dst, vec![0], vec![0]).unwrap_err();
        assert!(
            matches!(&e, GraphError::OutOfMemory { bytes, .. } if *bytes == 4 * u128::from(LIMIT + 1)),
            "{e:?}"
        );
    }
    // Memory for the offsets of a layout, but not for a counter per node.
    let nodes = 250_000_000;
    let r = Relation::from_coo(nodes, nodes, vec![1, 0], vec![1, 0]).unwrap();
    assert_eq!((r.csc().edge_ids(), r.csc().indptr()[nodes]), (Some(&[1, 0][..]), 2));
}

/// An error where memory is short, and not an abort when the first layout is made.
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "starts a process")]
#[test]
fn node_counts_that_memory_does_not_hold() {
    let run = "ulimit -v 1600000 && exec \"$0\" --exact --ignored relation::tests::a_relation_of_most_nodes";
    let out = std::process::Command::new("sh")
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    assert!(
        out.status.success() && String::from_utf8_lossy(&out.stdout).contains("1 passed"),
        "{out:?}"
    );
}
