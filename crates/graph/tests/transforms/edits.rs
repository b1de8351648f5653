use burn::tensor::{Bool, DType, Int, Tensor, TensorData};
use burn_gnn_graph::{ByColumn, Column, Combine, Frame, Graph, LoopFill, LoopsAt};
use proptest::prelude::*;

use crate::random::{
    ENDS, ETYPES, NTYPES, SQUARE, case, check_rows, devices, float, int, once, pick, write,
};

/// The columns of `random::write` for ids `from..to`.
fn rows(t: usize, from: usize, to: usize, device: &burn::tensor::Device) -> Frame {
    let mut f = Frame::new("new", to - from);
    write(&mut f, t, &(from as u32..to as u32).collect::<Vec<_>>(), device);
    f
}
fn columns(f: &Frame) -> Vec<(&str, Column)> {
    f.columns().map(|(n, c)| (n, c.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn removed_nodes_take_their_edges_along(c in case(), t in 0usize..3, raw in proptest::collection::vec(any::<u16>(), 0..5)) {
        let gone = pick(&raw, c.nodes[t]);
        let stays = |of: usize, v: u32| of != t || !gone.contains(&v);
        let mut nodes = c.all_nodes();
        nodes[t].retain(|v| !gone.contains(v));
        let edges = c.edges_where(|e, u, v| stays(ENDS[e].0, u) && stays(ENDS[e].1, v));
        for device in devices() {
            c.check(&c.graph(&device).remove_nodes(NTYPES[t], &gone).unwrap(), &nodes, &edges);
        }
    }

    #[test]
    fn removed_edges_leave_the_nodes(c in case(), t in 0usize..6, raw in proptest::collection::vec(any::<u16>(), 0..5)) {
        let gone = pick(&raw, c.edges[t].len());
        let mut edges = c.all_edges();
        edges[t].retain(|e| !gone.contains(e));
        c.check(&c.graph(&devices()[0]).remove_edges(t, &gone).unwrap(), &c.all_nodes(), &edges);
    }

    /// A graph built piece by piece is the graph built at once, and taking the pieces away gives the first graph.
    #[test]
    fn added_pieces_make_the_graph(c in case(), more in 0usize..4, t in 0usize..3, e in 0usize..6, cut in any::<u16>()) {
        for device in devices() {
            let mut small = c.clone();
            let cut = usize::from(cut) % (c.edges[e].len() + 1);
            let late = small.edges[e].split_off(cut);
            let (src, dst): (Vec<u32>, Vec<u32>) = late.iter().copied().unzip();
            let start = small.graph(&device);
            let (new_nodes, new_edges) = (rows(t, c.nodes[t], c.nodes[t] + more, &device), rows(10 + e, cut, c.edges[e].len(), &device));
            let g = start.add_nodes(NTYPES[t], more, &columns(&new_nodes)).unwrap();
            let g = g.add_edges(e, &src, &dst, &columns(&new_edges)).unwrap();
            let mut big = c.clone();
            big.nodes[t] += more;
            let whole = big.graph(&device);
            prop_assert_eq!((g.node_counts(), g.relations()), (whole.node_counts(), whole.relations()));
            for t in 0..3 {
                check_rows(&g.node_frames()[t], t, &big.all_nodes()[t]);
            }
            for t in 0..6 {
                check_rows(&g.edge_frames()[t], 10 + t, &big.all_edges()[t]);
            }
            let back = g.remove_edges(e, &(cut as u32..c.edges[e].len() as u32).collect::<Vec<_>>()).unwrap().graph;
            let back = back.remove_nodes(NTYPES[t], &(c.nodes[t] as u32..big.nodes[t] as u32).collect::<Vec<_>>()).unwrap();
            let again = small.graph(&device);
            prop_assert_eq!((back.graph.node_counts(), back.graph.relations()), (again.node_counts(), again.relations()));
        }
    }

    #[test]
    fn self_loops_come_last_and_go_again(c in case(), k in 0usize..3, once_only in any::<bool>()) {
        let t = SQUARE[k];
        let n = c.nodes[ENDS[t].0] as u32;
        let (at, nodes): (_, Vec<u32>) = if once_only {
            (LoopsAt::NodesWithout, (0..n).filter(|&v| !c.edges[t].contains(&(v, v))).collect())
        } else {
            (LoopsAt::EveryNode, (0..n).collect())
        };
        for device in devices() {
            let g = c.graph(&device);
            let looped = g.add_self_loops_with(t, at, LoopFill::Value(1.0)).unwrap();
            let mut edges = c.edges[t].clone();
            edges.extend(nodes.iter().map(|&v| (v, v)));
            let r = &looped.relations()[t];
            prop_assert_eq!(r.src().iter().copied().zip(r.dst().iter().copied()).collect::<Vec<_>>(), edges.clone());
            let f = &looped.edge_frames()[t];
            let (old, new) = (c.edges[t].len(), nodes.len());
            check_rows(&first_rows(f, old), 10 + t, &c.all_edges()[t]);
            prop_assert!(float(f, "x")[2 * old..] == vec![1.0; 2 * new] && int(f, "n")[old..] == vec![1; new]);
            prop_assert!(f.column("m").unwrap().to_data().iter::<bool>().skip(2 * old).all(|b| b));
            if once_only {
                let again = looped.add_self_loops_with(t, at, LoopFill::Value(0.0)).unwrap();
                prop_assert_eq!(again.relations(), looped.relations());
            }
            let without = looped.remove_self_loops(t).unwrap();
            c.check(&without, &c.all_nodes(), &c.edges_where(|e, u, v| e != t || u != v));
        }
    }

    #[test]
    fn reversed_twice_is_the_graph(c in case()) {
        let g = c.graph(&devices()[0]);
        let back = g.reverse().unwrap().reverse().unwrap();
        prop_assert_eq!((back.schema(), back.relations()), (g.schema(), g.relations()));
        for t in 0..ETYPES.len() {
            check_rows(&back.edge_frames()[t], 10 + t, &c.all_edges()[t]);
        }
    }

    #[test]
    fn reverses_follow_the_edges(c in case(), k in 0usize..3) {
        let t = SQUARE[k];
        let g = c.graph(&devices()[0]).add_reverse_edges(t).unwrap();
        let r = &g.relations()[t];
        let mut ids = c.all_edges()[t].clone();
        ids.extend(c.edges_where(|_, u, v| u != v)[t].iter());
        check_rows(&g.edge_frames()[t], 10 + t, &ids);
        for (i, &e) in ids.iter().enumerate() {
            let (u, v) = c.edges[t][e as usize];
            let want = if i < c.edges[t].len() { (u, v) } else { (v, u) };
            prop_assert_eq!((r.src()[i], r.dst()[i]), want);
        }
    }
}

/// The first `n` rows.
fn first_rows(f: &Frame, n: usize) -> Frame {
    let mut out = Frame::new("first", n);
    for (name, c) in f.columns() {
        out.insert_column(name, c.select(&(0..n as u32).collect::<Vec<_>>())).unwrap();
    }
    out
}

#[test]
fn values_that_nobody_gave_are_zero() {
    for device in devices() {
        let mut g = Graph::homogeneous(2, vec![0], vec![1]).unwrap();
        write(g.nodes_mut("_N").unwrap(), 0, &[3, 5], &device);
        let y = Column::new(Tensor::<1>::from_data([7.0f32], &device));
        let g = g.add_nodes("_N", 1, &[("y", y)]).unwrap();
        let f = g.nodes("_N").unwrap();
        assert_eq!(float(f, "x"), [3.0, 1.5, 5.0, 2.5, 0.0, 0.0]);
        assert_eq!(int(f, "n"), [3, 5, 0]);
        assert_eq!(
            f.column("m").unwrap().to_data().iter::<bool>().collect::<Vec<_>>()[4..],
            [false, false]
        );
        assert_eq!(float(f, "y"), [0.0, 0.0, 7.0]);
        assert_eq!(g.relation("_E").unwrap().num_dst(), 3);
    }
}

/// `fill_data` of DGL, column by column.
#[test]
fn loops_are_filled_from_in_edges() {
    for device in devices() {
        // Node 2 has no in-edges, node 1 three.
        let mut g = Graph::homogeneous(3, vec![0, 2, 0, 2], vec![1, 1, 0, 1]).unwrap();
        let f = g.edges_mut("_E").unwrap();
        f.insert(
            "w",
            Tensor::<2>::from_data([[1.0f32, -1.0], [2.0, 5.0], [3.0, 0.0], [6.0, -4.0]], &device),
        )
        .unwrap();
        f.insert(
            "d",
            Tensor::<1>::from_data(
                TensorData::from([1.0f64, 2.0, 3.0, 6.0]),
                (&device, DType::F64),
            ),
        )
        .unwrap();
        f.insert("k", Tensor::<1, Int>::from_data([4i64, -5, 6, 7], (&device, DType::I64)))
            .unwrap();
        f.insert("b", Tensor::<1, Bool>::from_data([true, false, true, false], &device)).unwrap();
        let with = |how| {
            let rule =
                ByColumn::all(LoopFill::InEdges(how)).with("b", LoopFill::InEdges(Combine::First));
            let rule =
                if how == Combine::Mean { rule.with("k", LoopFill::Value(9.0)) } else { rule };
            let g = g.add_self_loops_with("_E", LoopsAt::EveryNode, rule).unwrap();
            let f = g.edges("_E").unwrap();
            let d: Vec<f64> = f.column("d").unwrap().to_data().try_to_vec().unwrap();
            assert_eq!(
                f.column("b").unwrap().to_data().iter::<bool>().collect::<Vec<_>>()[4..],
                [true, true, false]
            );
            (float(f, "w")[8..].to_vec(), d[4..].to_vec(), int(f, "k")[4..].to_vec())
        };
        assert_eq!(
            with(Combine::Sum),
            (vec![3.0, 0.0, 9.0, 0.0, 0.0, 0.0], vec![3.0, 9.0, 0.0], vec![6, 6, 0])
        );
        assert_eq!(
            with(Combine::Mean),
            (vec![3.0, 0.0, 3.0, 0.0, 0.0, 0.0], vec![3.0, 3.0, 0.0], vec![9, 9, 9])
        );
        assert_eq!(
            with(Combine::Max),
            (vec![3.0, 0.0, 6.0, 5.0, 0.0, 0.0], vec![3.0, 6.0, 0.0], vec![6, 7, 0])
        );
        assert_eq!(
            with(Combine::Min),
            (vec![3.0, 0.0, 1.0, -4.0, 0.0, 0.0], vec![3.0, 1.0, 0.0], vec![6, -5, 0])
        );
        assert_eq!(
            with(Combine::First),
            (vec![3.0, 0.0, 1.0, -1.0, 0.0, 0.0], vec![3.0, 1.0, 0.0], vec![6, 4, 0])
        );
    }
}

/// DGL's count: always appended.
#[test]
fn loops_added_twice_are_there_twice() {
    let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4]).unwrap();
    let g = g.add_self_loops("_E").unwrap().add_self_loops("_E").unwrap();
    assert_eq!(g.num_edges("_E").unwrap(), 14);
    assert_eq!(
        g.remove_self_loops("_E").unwrap().original_edges("_E").unwrap().to_vec(),
        [0, 1, 2, 3]
    );
    assert_eq!(once(g.relation("_E").unwrap().src()).len(), 5);
}
