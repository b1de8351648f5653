//! Results of all operators do not depend on the numbering of nodes, the order of edges and the layout.

use burn::tensor::{DType, Device};
use burn_gnn_graph::Relation;
use burn_gnn_ops::Stream;
use proptest::prelude::*;

use crate::devices;
use crate::families::{self, Family, On, Typed};
use burn_gnn_testutil::{assert_close, graphs};

/// Tolerance for sums of a few dozen terms in f64, in another order.
const TOLERANCE: f64 = 1e-11;

/// Permutations of the rows of each kind.
struct Moves {
    src: Vec<usize>,
    dst: Vec<usize>,
    edge: Vec<usize>,
}

fn permutation(seed: u64, n: usize) -> Vec<usize> {
    let stream = Stream::new(seed, "permutation", n as u64);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| stream.uniform(a as u64, 0).total_cmp(&stream.uniform(b as u64, 0)));
    order
}

/// Moves entry `i` to position `to[i]`.
fn moved<T: Clone>(values: &[T], to: &[usize]) -> Vec<T> {
    let mut from = vec![0; to.len()];
    to.iter().enumerate().for_each(|(i, &at)| from[at] = i);
    from.into_iter().map(|i| values[i].clone()).collect()
}

impl Moves {
    fn nodes(g: &Typed, seed: u64) -> Self {
        let (n, m) = (g.rows(On::Src), g.rows(On::Dst));
        Self {
            src: permutation(seed, n),
            dst: permutation(seed + 1, m),
            edge: (0..g.rows(On::Edge)).collect(),
        }
    }

    fn edges(g: &Typed, seed: u64) -> Self {
        Self {
            src: (0..g.rows(On::Src)).collect(),
            dst: (0..g.rows(On::Dst)).collect(),
            edge: permutation(seed, g.rows(On::Edge)),
        }
    }

    fn graph(&self, g: &Typed) -> Typed {
        let endpoints = g.relation.src().iter().zip(g.relation.dst());
        let endpoints: Vec<(u32, u32)> = endpoints
            .map(|(&u, &v)| (self.src[u as usize] as u32, self.dst[v as usize] as u32))
            .collect();
        let relation =
            graphs::relation(g.rows(On::Src), g.rows(On::Dst), &moved(&endpoints, &self.edge));
        Typed {
            relation,
            types: moved(&g.types, &self.edge),
            ids: moved(&g.ids, &self.edge).into(),
        }
    }

    fn values(&self, family: &Family, values: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let each = family.shapes().into_iter().zip(values);
        each.map(|((on, width), values)| {
            let to = match on {
                On::Src => &self.src,
                On::Dst => &self.dst,
                On::Edge => &self.edge,
                On::Whole => return values.clone(),
            };
            moved(&values.chunks(width).collect::<Vec<_>>(), to).concat()
        })
        .collect()
    }
}

/// Runs a family on a graph and on the permuted graph. Returns the permuted result of the former, and the result of the
/// latter.
fn both(
    family: &Family,
    g: &Typed,
    moves: &Moves,
    device: &Device,
    seed: u64,
) -> [Vec<Vec<f64>>; 2] {
    let values = family.values(g, seed);
    let plain = family.run(g, &values, (device, DType::F64), false);
    [
        moves.values(family, &plain),
        family.run(&moves.graph(g), &moves.values(family, &values), (device, DType::F64), false),
    ]
}

/// Every operator returns NaN and infinities where its reference does.
#[test]
fn numbers_that_are_none_stay_visible() {
    let g = Typed::new(&graphs::random(6, 5, 20, 2.0));
    let is = |a: f64, b: f64| {
        (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= TOLERANCE * (1.0 + b.abs())
    };
    for family in families::all(3) {
        for (operand, special) in (0..family.shapes().len() - 1)
            .flat_map(|i| [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(|x| (i, x)))
        {
            let mut values = family.values(&g, 4);
            let at = values[operand].len() / 2;
            values[operand][at] = special;
            for (backend, device) in devices() {
                let [got, want] = [false, true].map(|reference| {
                    family
                        .run(&g, &values, (&device, DType::F64), reference)
                        .pop()
                        .unwrap_or_default()
                });
                // The composition over relations uses Burn's maximum of two tensors, which ignores NaN; the kernel does
                // not.
                let more = |a: f64| {
                    special.is_nan() && a.is_nan() && family.name.starts_with("multi_gspmm_cross")
                };
                let all = got.len() == want.len()
                    && got.iter().zip(&want).all(|(&a, &b)| is(a, b) || more(a));
                assert!(
                    all,
                    "{}, {backend}, {special} in operand {operand}: {got:?} against {want:?}",
                    family.name
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn layouts_of_any_graph(relation in graphs::any_relation(1..40), wide: bool) {
        layouts_agree(&relation, &families::few(if wide { 9 } else { 2 }));
    }

    /// Every kernel against its reference, values and gradients.
    #[test]
    fn kernels_are_references(relation in graphs::any_relation(1..40), width in prop_oneof![Just(2), Just(9), Just(16)], seed in 0u64..1000) {
        let g = Typed::new(&relation);
        for family in families::all(width) {
            let values = family.values(&g, seed);
            for (backend, device) in devices() {
                let [got, want] = [false, true].map(|reference| family.run(&g, &values, (&device, DType::F64), reference));
                for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                    assert_close(&format!("{}, {backend}, {i}", family.name), got, want, 1e-10);
                }
            }
        }
    }

    /// Renumbering nodes keeps the order of edges and hence of every sum over a neighbourhood, so results have the same
    /// bits. Only sums over all nodes change.
    #[test]
    fn numbers_of_nodes_do_not_matter(relation in graphs::any_relation(1..40), wide: bool, seed in 0u64..1000) {
        let g = Typed::new(&relation);
        let moves = Moves::nodes(&g, seed);
        for family in families::all(if wide { 19 } else { 3 }) {
            for (backend, device) in devices() {
                let [want, got] = both(&family, &g, &moves, &device, seed);
                for (i, (on, _)) in family.shapes().into_iter().enumerate() {
                    let what = format!("{}, {backend}, {i} on {on:?}", family.name);
                    if on == On::Whole {
                        assert_close(&what, &got[i], &want[i], TOLERANCE);
                    } else {
                        assert_eq!(got[i], want[i], "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn order_of_edges_does_not_matter(relation in graphs::any_relation(1..40), wide: bool, seed in 0u64..1000) {
        let g = Typed::new(&relation);
        let moves = Moves::edges(&g, seed);
        for family in families::all(if wide { 19 } else { 3 }) {
            for (backend, device) in devices() {
                let [want, got] = both(&family, &g, &moves, &device, seed);
                for (i, (on, _)) in family.shapes().into_iter().enumerate() {
                    assert_close(&format!("{}, {backend}, {i} on {on:?}", family.name), &got[i], &want[i], TOLERANCE);
                }
                if family.selects {
                    assert_eq!(got.last(), want.last(), "{}, {backend}: selected values", family.name);
                }
            }
        }
    }
}

/// A relation from every layout, and reversed twice, gives the same bits.
fn layouts_agree(coo: &Relation, families: &[Family]) {
    let (n, m) = (coo.num_src(), coo.num_dst());
    let (csr, csc) = (coo.csr(), coo.csc());
    // Edges that are numbered in the order of a layout need no ids.
    let sorted = |by: fn(&(u32, u32)) -> (u32, u32)| {
        let mut endpoints: Vec<_> =
            coo.src().iter().copied().zip(coo.dst().iter().copied()).collect();
        endpoints.sort_by_key(by);
        graphs::relation(n, m, &endpoints)
    };
    let (by_src, by_dst) = (sorted(|&(u, v)| (u, v)), sorted(|&(u, v)| (v, u)));
    let reversed = graphs::relation(
        m,
        n,
        &coo.dst().iter().copied().zip(coo.src().iter().copied()).collect::<Vec<_>>(),
    )
    .reverse();
    let pairs = [
        (
            "CSR",
            coo,
            Relation::from_csr(n, m, csr.indptr(), csr.indices(), csr.edge_ids()).unwrap(),
        ),
        (
            "CSC",
            coo,
            Relation::from_csc(n, m, csc.indptr(), csc.indices(), csc.edge_ids()).unwrap(),
        ),
        ("reversed", coo, reversed),
        (
            "CSR in order",
            &by_src,
            Relation::from_csr(n, m, by_src.csr().indptr(), by_src.csr().indices(), None).unwrap(),
        ),
        (
            "CSC in order",
            &by_dst,
            Relation::from_csc(n, m, by_dst.csc().indptr(), by_dst.csc().indices(), None).unwrap(),
        ),
    ];
    assert!(by_src.csr().edge_ids().is_none() && by_dst.csc().edge_ids().is_none());
    for family in families {
        for (backend, device) in devices() {
            for (layout, relation, same) in &pairs {
                let (g, other) = (Typed::new(relation), Typed::new(same));
                let values = family.values(&g, 3);
                let [want, got] =
                    [&g, &other].map(|g| family.run(g, &values, (&device, DType::F32), false));
                assert_eq!(got, want, "{}, {backend}, {layout}", family.name);
            }
        }
    }
}

#[test]
fn layouts() {
    let coo = graphs::random(40, 30, 600, 2.0);
    assert!(coo.csr().edge_ids().is_some() && coo.csc().edge_ids().is_some());
    layouts_agree(&coo, &families::all(9));
}
