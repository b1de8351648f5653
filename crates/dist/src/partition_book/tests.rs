use proptest::prelude::*;

use super::*;

fn book(nodes: &[Vec<u64>], parts: usize) -> PartitionBook {
    let names = (0..nodes.len()).map(|i| format!("t{i}")).collect();
    let schema = Schema::new(names, vec![EdgeType::new("t0", "r", "t0")]).unwrap();
    let numbers = |what, counts: &[Vec<u64>]| Numbering::ranges(what, parts, counts).unwrap();
    PartitionBook::new(
        Arc::new(schema),
        parts,
        numbers("node", nodes),
        numbers("edge", &[vec![1; parts]]),
    )
}

/// Ids kept: node `i` of each type goes to part `owner[i]`.
fn kept(owner: &[Vec<u32>], parts: usize) -> PartitionBook {
    let names = (0..owner.len()).map(|i| format!("t{i}")).collect();
    let schema = Schema::new(names, vec![]).unwrap();
    let nodes = owner.iter().map(|o| ByPart::new(o.len(), parts, |i| o[i])).collect();
    let nodes = Numbering::kept("node", parts, nodes).unwrap();
    PartitionBook::new(
        Arc::new(schema),
        parts,
        nodes,
        Numbering::kept("edge", parts, vec![]).unwrap(),
    )
}

/// The layout that DGL documents for 3 parts and two types.
#[test]
fn part_major_then_type_major() {
    let b = book(&[vec![16, 17, 17], vec![10, 10, 10]], 3);
    assert_eq!(b.nodes.global_ranges(0), [[0, 16], [26, 43], [53, 70]]);
    assert_eq!(b.nodes.global_ranges(1), [[16, 26], [43, 53], [70, 80]]);
    assert_eq!(b.global_to_node(HomoId(26)).unwrap(), TypedId { ty: 0, id: 16 });
    assert_eq!(b.nid2partid(0, 15).unwrap(), 0);
    assert_eq!(b.nid2partid(0, 16).unwrap(), 1);
    let part = |part, num_nodes| PartMetadata { part, num_nodes, num_edges: 1 };
    assert_eq!(b.metadata(), [part(0, 26), part(1, 27), part(2, 27)]);
}

#[test]
fn kept_ids_are_type_major() {
    let b = kept(&[vec![1, 0, 1], vec![0, 1]], 3);
    assert!(!b.is_reshuffled());
    assert_eq!(b.nid2partid(0, &[0, 1, 2]).unwrap(), [1, 0, 1]);
    assert_eq!(b.map_to_homo_nid(1, &vec![0, 1]).unwrap(), [HomoId(3), HomoId(4)]);
    assert_eq!(b.map_to_per_ntype(HomoId(4)).unwrap(), TypedId { ty: 1, id: 1 });
    assert_eq!(b.nids_of_part(1, 0).unwrap(), [0, 2]);
    assert_eq!(b.nid2localnid(0, 2, 1).unwrap(), 1);
    assert_eq!(b.localnid2nid(0, 1, 1).unwrap(), 2);
    assert_eq!(b.nodes.owners(), [1, 0, 1, 0, 1]);
    let e = b.partid2nids(1, 0).unwrap_err().to_string();
    assert!(e.contains("`nids_of_part`"), "{e}");
    assert!(matches!(b.nid2localnid(0, 1, 1), Err(DistError::NotOwned { owner: 0, part: 1, .. })));
    assert_eq!(b.metadata()[2], PartMetadata { part: 2, num_nodes: 0, num_edges: 0 });
}

/// Every call takes a type by name as by number.
#[test]
fn types_by_name() {
    let b = book(&[vec![16, 17, 17], vec![10, 10, 10]], 3);
    assert_eq!((b.num_nodes("t1").unwrap(), b.num_edges("r").unwrap()), (30, 3));
    assert_eq!(b.nid2partid("t0", &[15, 16]).unwrap(), b.nid2partid(0, &[15, 16]).unwrap());
    assert_eq!(b.nid2partid(&b.ntypes()[1], 10).unwrap(), 1);
    assert_eq!(b.eid2partid(("t0", "r", "t0"), 2).unwrap(), 2);
    assert_eq!((b.partid2nids(1, "t1").unwrap(), b.partid2eids(1, "r").unwrap()), (10..20, 1..2));
    assert_eq!(b.nids_of_part(2, "t1").unwrap(), b.nids_of_part(2, 1).unwrap());
    assert_eq!(b.eids_of_part(2, "r").unwrap(), [2]);
    assert_eq!(b.map_to_homo_nid("t1", 0).unwrap(), HomoId(16));
    assert_eq!(b.map_to_homo_eid("r", 2).unwrap(), HomoId(2));
    assert_eq!(
        (b.nid2localnid("t1", 10, 1).unwrap(), b.localnid2nid("t1", 0, 1).unwrap()),
        (0, 10)
    );
    assert_eq!((b.eid2localeid("r", 1, 1).unwrap(), b.localeid2eid("r", 0, 1).unwrap()), (0, 1));
    let e = b.nid2partid("t2", 0).unwrap_err().to_string();
    assert!(e.contains("unknown node type `t2`"), "{e}");
    let e = b.eid2partid("q", 0).unwrap_err().to_string();
    assert!(e.contains("unknown edge type `q`"), "{e}");
}

#[test]
fn outside_is_an_error() {
    let b = book(&[vec![2, 3]], 2);
    let text = |e: DistError| e.to_string();
    assert_eq!(
        text(b.nid2partid(0, 5).unwrap_err()),
        "node id 5 is out of range 0..5; number them from 0"
    );
    assert_eq!(
        text(b.nid2partid(0, &[1, 7, 6]).unwrap_err()),
        "node id 7 is out of range 0..5; number them from 0"
    );
    assert_eq!(
        text(b.nid2partid(1, 0).unwrap_err()),
        "unknown node type `1`; the graph has [\"t0\"]: name one of these"
    );
    assert_eq!(
        text(b.eid2partid(0, 2).unwrap_err()),
        "edge id 2 is out of range 0..2; number them from 0"
    );
    assert_eq!(
        text(b.global_to_node(HomoId(5)).unwrap_err()),
        "node global id 5 is out of range 0..5; number them from 0"
    );
    assert_eq!(
        text(b.partid2nids(2, 0).unwrap_err()),
        "node partition 2 is out of range 0..2; number them from 0"
    );
    assert_eq!(
        text(b.nids_of_part(2, 0).unwrap_err()),
        "node partition 2 is out of range 0..2; number them from 0"
    );
    assert_eq!(
        text(b.nid2localnid(0, 1, 1).unwrap_err()),
        "node 1 belongs to part 0, not to part 1; use part 0"
    );
    assert_eq!(
        text(b.localnid2nid(0, 3, 1).unwrap_err()),
        "node local id 3 is out of range 0..3; number them from 0"
    );
    let b = kept(&[vec![0, 1]], 2);
    assert_eq!(
        text(b.nid2partid(0, 2).unwrap_err()),
        "node id 2 is out of range 0..2; number them from 0"
    );
    assert_eq!(
        text(b.map_to_per_ntype(&[HomoId(0), HomoId(2)]).unwrap_err()),
        "node global id 2 is out of range 0..2; number them from 0"
    );
}

/// Long lists are shared out among threads; the answers and the first error are the same.
#[test]
fn many_ids() {
    let b = book(&[vec![30_000, 0, 20_000]], 3);
    let ids: Vec<u64> = (0..50_000).rev().collect();
    let owners = b.nid2partid(0, &ids).unwrap();
    assert!(owners.iter().zip(&ids).all(|(&p, &i)| p == if i < 30_000 { 0 } else { 2 }));
    let mut wrong = ids.clone();
    (wrong[40_000], wrong[20_000]) = (99_999, 77_777);
    assert_eq!(
        b.nid2partid(0, &wrong).unwrap_err().to_string(),
        "node id 77777 is out of range 0..50000; number them from 0"
    );
}

#[test]
fn by_part_is_stable_for_any_number_of_threads() {
    let owner = |i: usize| (i * 7 % 5) as u32;
    let sorted = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ByPart::new(100_000, 6, owner))
    };
    let one = sorted(1);
    assert_eq!(one, sorted(3));
    assert_eq!(one.counts, [20_000, 20_000, 20_000, 20_000, 20_000, 0]);
    assert!(
        one.ids
            .chunks(20_000)
            .enumerate()
            .all(|(p, c)| c.is_sorted() && c.iter().all(|&i| owner(i as usize) == p as u32))
    );
    assert!(
        one.positions()
            .iter()
            .enumerate()
            .all(|(id, &position)| one.ids[position as usize] == id as u32)
    );
}

/// Every call and its inverse, for every id.
fn there_and_back(b: &PartitionBook, types: usize) {
    let mut seen = std::collections::BTreeSet::new();
    for p in 0..b.num_parts() {
        for t in 0..types {
            for (local, id) in b.nids_of_part(p, t).unwrap().into_iter().enumerate() {
                let typed = TypedId { ty: t, id };
                assert_eq!(b.nid2partid(t, id).unwrap(), p);
                let global = b.node_to_global(typed).unwrap();
                assert_eq!(b.global_to_node(global).unwrap(), typed);
                assert_eq!(b.nodes.locate(global).unwrap(), (p, typed));
                assert_eq!(b.nid2localnid(t, id, p).unwrap(), local as u64);
                assert_eq!(b.localnid2nid(t, local as u64, p).unwrap(), id);
                assert!(seen.insert(global));
            }
        }
        assert!(b.nodes.global_ids(p).is_sorted_by(|a, b| a < b));
        assert_eq!(b.nodes.global_ids(p).count() as u64, b.metadata()[p].num_nodes);
    }
    assert_eq!(seen.len() as u64, b.nodes.total());
    assert_eq!(seen.last().map_or(0, |j| j.0 + 1), b.nodes.total());
}

proptest! {
    #[test]
    fn ranges(counts in (1usize..5, 1usize..4).prop_flat_map(|(p, t)| {
        proptest::collection::vec(proptest::collection::vec(0u64..5, p), t)
    })) {
        let parts = counts[0].len();
        let b = book(&counts, parts);
        there_and_back(&b, counts.len());
        let mut global = 0;
        for p in 0..parts {
            for (t, counts) in counts.iter().enumerate() {
                prop_assert_eq!(b.nodes.global_ranges(t)[p], [global, global + counts[p]]);
                prop_assert_eq!(b.partid2nids(p, t).unwrap().collect::<Vec<_>>(), b.nids_of_part(p, t).unwrap());
                global += counts[p];
            }
        }
    }

    #[test]
    fn explicit(owner in proptest::collection::vec(proptest::collection::vec(0u32..4, 0..9), 1..4)) {
        let b = kept(&owner, 4);
        there_and_back(&b, owner.len());
        let flat: Vec<i32> = owner.iter().flatten().map(|&p| p as i32).collect();
        prop_assert_eq!(b.nodes.owners(), flat);
    }
}
