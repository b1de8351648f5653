//! Every typed error of message passing, from invalid input, with its text.

use burn::tensor::{DType, Device, Int, Tensor};
use burn_gnn_graph::{Graph, GraphError};
use burn_gnn_ops::function::{by_degree, copy_u, max, sum, u_mul_e, u_mul_v};
use burn_gnn_ops::*;
use burn_gnn_testutil::{graphs, panic_text};

/// Two types, three edge types, of which two share a name.
fn graph() -> Graph {
    let device = Device::flex();
    let b = Graph::builder().nodes("item", 2).nodes("user", 3);
    let b = b.edges(("user", "likes", "user"), vec![0, 2], vec![1, 1]).edges(
        ("user", "likes", "item"),
        vec![0],
        vec![1],
    );
    let mut g = b.edges(("item", "has", "user"), vec![0, 1], vec![0, 0]).build().unwrap();
    g.nodes_mut("user").unwrap().insert("h", Tensor::<2>::ones([3, 4], &device)).unwrap();
    g.nodes_mut("user").unwrap().insert("n", Tensor::<1, Int>::zeros([3], &device)).unwrap();
    g.nodes_mut("item").unwrap().insert("h", Tensor::<2>::ones([2, 4], &device)).unwrap();
    g.edges_mut("has").unwrap().insert("w", Tensor::<2>::ones([2, 3], &device)).unwrap();
    g
}

const LIKES: (&str, &str, &str) = ("user", "likes", "user");

#[track_caller]
fn text<T>(result: Result<T, OpsError>) -> String {
    match result {
        Ok(_) => panic!("nothing was wrong"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn fields_of_message_and_reduce_differ() {
    let g = graph();
    let on = g.on(LIKES).unwrap();
    let error = on.update_all(copy_u("h", "m"), sum("msg", "y")).unwrap_err();
    assert!(
        matches!(&error, OpsError::MessageField { reads, made, .. } if reads == "msg" && made == &["m"])
    );
    let want = "update_all: the reduce function reads message `msg`, the message function returns [\"m\"]; use one name in both";
    assert_eq!(error.to_string(), want);
    let closure = |e: &EdgeBatch| Ok(Fields::of("b", e.src::<2>("h")?).with("a", e.src::<2>("h")?));
    let want = "pull: the reduce function reads message `m`, the message function returns [\"a\", \"b\"]; use one name in both";
    assert_eq!(text(on.pull(&[1], closure, sum("m", "y"))), want);
    // A closure as reduce function.
    let closure = |n: &NodeBatch| Ok(Fields::of("y", n.mailbox::<2>("x")?.sum()?));
    assert_eq!(
        text(on.update_all(copy_u("h", "m"), closure)),
        "messages: no column `x`; there are [\"m\"]: name one of these"
    );
    let no_messages = |n: &NodeBatch| Ok(Fields::of("y", n.mailbox::<2>("m")?.sum()?));
    assert_eq!(
        text(g.apply_nodes("user", .., no_messages)),
        "messages: no column `m`; there are []: add it first"
    );
}

#[test]
fn unknown_fields_list_those_that_exist() {
    let g = graph();
    let on = g.on(LIKES).unwrap();
    let error = on.update_all(copy_u("z", "m"), sum("m", "y")).unwrap_err();
    assert!(
        matches!(&error, OpsError::Graph(e) if matches!(&**e, GraphError::UnknownColumn { name, .. } if name == "z"))
    );
    assert_eq!(
        error.to_string(),
        "nodes of `user`: no column `z`; there are [\"h\", \"n\"]: name one of these"
    );
    assert_eq!(error, on.update_all(copy_u("z", "m"), sum("m", "y")).unwrap_err());
    let want = "edges of `item:has:user`: no column `z`; there are [\"w\"]: name one of these";
    assert_eq!(text(g.on("has").unwrap().apply_edges(.., u_mul_e("h", "z", "y"))), want);
    let closure = |e: &EdgeBatch| Ok(Fields::of("m", e.data::<1>("z")?));
    assert_eq!(text(g.on("has").unwrap().apply_edges(.., closure)), want);
    // Over all edge types: an edge type without the field.
    assert_eq!(
        text(g.update_all(u_mul_e("h", "w", "m"), sum("m", "y"))),
        "edges of `user:likes:item`: no column `w`; there are []: add it first"
    );
}

#[test]
fn ranks_and_kinds() {
    let g = graph();
    let on = g.on(LIKES).unwrap();
    let want = "nodes of `user`: column `n`: expected a Float tensor of rank 1 to 5, found a Int tensor of rank 1 and dtype I32; \
                read it as stored, or convert the column";
    assert_eq!(text(on.update_all(copy_u("n", "m"), sum("m", "y"))), want);
    let closure = |e: &EdgeBatch| Ok(Fields::of("m", e.src::<3>("h")?));
    let want = "nodes of `user`: column `h`: expected a Float tensor of rank 3, found a Float tensor of rank 2 and dtype F32; \
                read it as stored, or convert the column";
    assert_eq!(text(on.update_all(closure, sum("m", "y"))), want);
    let closure = |e: &EdgeBatch| Ok(Fields::of("m", e.endpoints::<1, Int>(Target::Src, "n")?));
    let want = "messages: column `m`: expected a Float tensor of rank 1 to 5, found a Int tensor of rank 1 and dtype I32; \
                read it as stored, or convert the column";
    assert_eq!(text(on.update_all(closure, sum("m", "y"))), want);
    let closure = |n: &NodeBatch| Ok(Fields::of("y", n.mailbox::<2>("m")?.dense::<2>()?));
    let want = "mailbox: the result has rank 3, the output type has rank 2; change the rank parameter of the output";
    assert_eq!(text(on.update_all(copy_u("h", "m"), closure)), want);
}

#[test]
fn element_types_devices_and_shapes() {
    let device = Device::flex();
    let mut b = RelationData::new(graphs::small());
    b.src_mut().insert("h", Tensor::<2>::ones([5, 3], &device)).unwrap();
    b.edges_mut().insert("w", Tensor::<1>::ones([8], (&device, DType::F64))).unwrap();
    let error = b.update_all(u_mul_e("h", "w", "m"), sum("m", "y")).unwrap_err();
    assert!(matches!(error, OpsError::UnlikeFields { what: "element type", .. }));
    let want =
        "u_mul_e: `w` of edges has element type F64, `h` of sources has F32; convert one of them";
    assert_eq!(error.to_string(), want);
    b.dst_mut().insert("h", Tensor::<2>::ones([4, 3], &burn_gnn_testutil::other_device())).unwrap();
    let error = b.update_all(u_mul_v("h", "h", "m"), sum("m", "y")).unwrap_err();
    assert!(matches!(error, OpsError::UnlikeFields { what: "device", .. }), "{error}");
    b.edges_mut().insert("v", Tensor::<2>::ones([8, 2], &device)).unwrap();
    let want = "u_mul_e: feature shapes [3] of `lhs` and [2] of `rhs` (first axis left out) do not broadcast: \
                aligned at the end, axes must be equal or 1; reshape one of them";
    assert_eq!(text(b.update_all(u_mul_e("h", "v", "m"), sum("m", "y"))), want);
    // Results on another device than the frame.
    let y = b.update_all(copy_u("h", "m"), sum("m", "y"));
    assert!(text(y).starts_with("destinations: column `y` has device"));
}

#[test]
fn rows_that_closures_return() {
    let g = graph();
    let on = g.on(LIKES).unwrap();
    let device = Device::flex();
    let rows = |n: usize| Tensor::<1>::ones([n], &device);
    let want = "update_all: message function: field `m`: expected length 2 (one row per edge of the batch), got 3; give 2 entries";
    assert_eq!(
        text(on.update_all(|_: &EdgeBatch| Ok(Fields::of("m", rows(3))), sum("m", "y"))),
        want
    );
    let want = "update_all: reduce function: field `y`: expected length 1 (one row per node of the batch), got 3; give 1 entries";
    assert_eq!(
        text(on.update_all(copy_u("h", "m"), |_: &NodeBatch| Ok(Fields::of("y", rows(3))))),
        want
    );
    assert_eq!(
        text(
            on.update_all(
                copy_u("h", "m"),
                by_degree(|_: &NodeBatch| Ok(Fields::of("y", rows(3))))
            )
        ),
        want
    );
    let want = "apply_nodes: apply function: field `y`: expected length 2 (one row per node of the batch), got 3; give 2 entries";
    assert_eq!(
        text(g.apply_nodes("user", &[0, 2], |_: &NodeBatch| Ok(Fields::of("y", rows(3))))),
        want
    );
    let calls = [burn_gnn_ops::on(LIKES, copy_u("h", "m"), sum("m", "y"))];
    let want = "multi_update_all: cross reducer: field `y`: expected length 3 (one row per node), got 7; give 3 entries";
    assert_eq!(text(g.multi_update_all(calls, Cross::with(|_: Vec<Tensor<2>>| rows(7)))), want);
    // Errors of closures are returned unchanged.
    let error = on
        .update_all(|e: &EdgeBatch| Ok(Fields::of("m", e.src::<2>("no")?)), sum("m", "y"))
        .unwrap_err();
    assert!(matches!(error, OpsError::Graph(_)));
}

#[test]
fn dense_mailboxes_and_degrees() {
    let device = Device::flex();
    let mut b = RelationData::new(graphs::small());
    b.src_mut().insert("h", Tensor::<2>::ones([5, 3], &device)).unwrap();
    let closure = |n: &NodeBatch| {
        Ok(Fields::of("y", n.mailbox::<2>("m")?.dense::<3>()?.sum_dim(1).squeeze_dim::<2>(1)))
    };
    let want = "mailbox: nodes of this batch have 2 to 4 messages, a dense mailbox requires equal numbers; wrap the reduce function in `by_degree`";
    assert_eq!(text(b.update_all(copy_u("h", "m"), closure)), want);
    assert!(b.update_all(copy_u("h", "m"), by_degree(closure)).is_ok());
    let other = |n: &NodeBatch| {
        let m = n.mailbox::<2>("m")?.dense::<3>()?;
        Ok(Fields::of(format!("y{}", m.dims()[1]), m.sum_dim(1).squeeze_dim::<2>(1)))
    };
    let want = "update_all: by_degree: the reduce function must return [\"y2\"] for every degree, returned [\"y4\"] for degree 4; \
                return the same fields for every degree";
    assert_eq!(text(b.update_all(copy_u("h", "m"), by_degree(other))), want);
    let other = |n: &NodeBatch| {
        let m = n.mailbox::<2>("m")?.dense::<3>()?;
        let [n, d, w] = m.dims();
        Ok(Fields::of("y", m.reshape([n, d * w])))
    };
    let want = "update_all: by_degree: the reduce function must return [\"y: F32 [6]\"] for every degree, \
                returned [\"y: F32 [12]\"] for degree 4; return the same fields for every degree";
    assert_eq!(text(b.update_all(copy_u("h", "m"), by_degree(other))), want);
    let spread = |n: &NodeBatch| {
        Ok(Fields::of("y", n.mailbox::<2>("m")?.spread(Tensor::<1>::ones([9], &device))?))
    };
    assert_eq!(
        text(b.update_all(copy_u("h", "m"), spread)),
        "mailbox: `x` must have 3 rows (one per node of the batch), got 9; give as many rows"
    );
}

#[test]
#[should_panic(expected = "mailbox: `map` must return 8 rows (one per message), got 2")]
fn a_map_keeps_rows() {
    let device = Device::flex();
    let mut b = RelationData::new(graphs::small());
    b.src_mut().insert("h", Tensor::<2>::ones([5, 3], &device)).unwrap();
    let closure = |n: &NodeBatch| {
        Ok(Fields::of("y", n.mailbox::<2>("m")?.map(|_| Tensor::<1>::ones([2], &device)).sum()?))
    };
    let _ = b.update_all(copy_u("h", "m"), closure);
}

#[test]
fn ids() {
    let g = graph();
    let on = g.on(LIKES).unwrap();
    let (m, r) = (|| copy_u("h", "m"), || sum("m", "y"));
    assert_eq!(
        text(on.pull(&[0, 3], m(), r())),
        "pull: `nodes[1]` must lie in 0..3 (as many as the graph has), got 3; number them from 0"
    );
    assert_eq!(
        text(on.push(&[9], m(), r())),
        "push: `nodes[0]` must lie in 0..3 (as many as the graph has), got 9; number them from 0"
    );
    assert_eq!(
        text(on.send_and_recv(&[0, 2], m(), r())),
        "send_and_recv: `edges[1]` must lie in 0..2 (as many as the graph has), got 2; number them from 0"
    );
    assert_eq!(
        text(on.prop_nodes([[0], [5]], m(), r())),
        "prop_nodes: `nodes[0]` must lie in 0..3 (as many as the graph has), got 5; number them from 0"
    );
    assert_eq!(
        text(on.apply_edges(&[2], m())),
        "apply_edges: `edges[0]` must lie in 0..2 (as many as the graph has), got 2; number them from 0"
    );
    let error = on.pull(&[1, 0, 1], m(), r()).unwrap_err();
    assert!(matches!(error, OpsError::Repeated { position: 2, first: 0, id: 1, .. }));
    assert_eq!(
        error.to_string(),
        "pull: `nodes[2]` is 1, and so is `nodes[0]`; give every id once"
    );
    assert_eq!(
        text(on.send_and_recv(&[1, 1], m(), r())),
        "send_and_recv: `edges[1]` is 1, and so is `edges[0]`; give every id once"
    );
}

#[test]
fn a_part_of_a_column_keeps_its_shape_and_element_type() {
    let device = Device::flex();
    let mut g = graph();
    g.nodes_mut("user").unwrap().insert("y", Tensor::<2>::ones([3, 2], &device)).unwrap();
    let error = g.on(LIKES).unwrap().pull(&[1], copy_u("h", "m"), sum("m", "y")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nodes of `user`: column `y` has row shape [4], expected [2]; reshape the column"
    );
    let error = g.on(LIKES).unwrap().pull(&[1], copy_u("h", "m"), sum("m", "n")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nodes of `user`: column `n` has dtype F32, expected I32; convert the column"
    );
}

#[test]
fn edge_types() {
    let g = graph();
    let error = g.on("likes").unwrap_err();
    assert!(
        matches!(&error, OpsError::Graph(e) if matches!(**e, GraphError::AmbiguousEdgeType { .. }))
    );
    let want = "edge type `likes` is ambiguous: [\"user:likes:item\", \"user:likes:user\"]; use the canonical (src, relation, dst)";
    assert_eq!(error.to_string(), want);
    assert!(
        text(g.on("hates"))
            .starts_with("unknown edge type `hates`; the graph has [\"item:has:user\"")
    );
    let error = g.pull(&[0], copy_u("h", "m"), sum("m", "y")).unwrap_err();
    let want = "pull: expected a graph of one edge type, got [\"item:has:user\", \"user:likes:item\", \"user:likes:user\"]; \
                choose one with `on(edge_type)`";
    assert_eq!(error.to_string(), want);
    assert!(matches!(g.apply_edges(&[0], copy_u("h", "m")), Err(OpsError::EdgeTypes { .. })));
    let nothing = Graph::builder().nodes("a", 1).build().unwrap();
    assert!(matches!(
        nothing.update_all(copy_u("h", "m"), sum("m", "y")),
        Err(OpsError::EdgeTypes { .. })
    ));
    let closure = |n: &NodeBatch| Ok(Fields::of("y", n.mailbox::<2>("m")?.sum()?));
    let error = g.update_all(copy_u("h", "m"), closure).unwrap_err();
    let want = "update_all: messages of several edge types can be reduced together by sum, mean, max or min only; use `multi_update_all`, \
                or `on(edge_type)` for a single edge type";
    assert_eq!(error.to_string(), want);
    assert!(matches!(
        g.apply_nodes("cat", .., |_: &NodeBatch| Ok(Fields::default())),
        Err(OpsError::Graph(_))
    ));
}

/// Rows are checked per edge type, not by the total number of edges.
#[test]
fn weights_and_features_of_one_edge_type() {
    let (g, device) = (graph(), Device::flex());
    let edges = g.num_edges("has").unwrap();
    assert_ne!(edges, g.total_edges());
    let weight = |n: usize| g.edge_types().with_weight("has", Tensor::<1>::ones([n], &device));
    let features =
        |n: usize| g.edge_types().with_features("has", Tensor::<2>::ones([n, 2], &device));
    assert!(weight(edges).is_ok() && features(edges).is_ok());
    for n in [edges + 1, g.total_edges(), 0] {
        let want = |what: &str| {
            format!(
                "`edge {what}` of relation `item:has:user`: expected length {edges} (one per edge of the type), got {n}; give {edges} entries"
            )
        };
        assert_eq!(weight(n).unwrap_err().to_string(), want("weight"));
        assert_eq!(features(n).unwrap_err().to_string(), want("features"));
    }
}

#[test]
fn relations_that_do_not_fit_each_other() {
    let device = Device::flex();
    let mut g = graph();
    let twice = ["has", "has"].map(|t| on(t, copy_u("h", "m"), sum("m", "y")));
    assert_eq!(
        text(g.multi_update_all(twice, Cross::sum())),
        "edge type `item:has:user` was given twice; give it once"
    );
    let ambiguous = [on("likes", copy_u("h", "m"), sum("m", "y"))];
    assert!(text(g.multi_update_all(ambiguous, Cross::sum())).contains("is ambiguous"));
    let other =
        [on("has", copy_u("h", "m"), sum("m", "y")), on(LIKES, copy_u("h", "m"), sum("m", "z"))];
    let want = "multi_update_all: into node type `user`, edge type `user:likes:user` gives fields [\"z\"], `item:has:user` gives [\"y\"]; \
                make them equal";
    assert_eq!(text(g.multi_update_all(other, Cross::sum())), want);
    let ranks =
        [on("has", copy_u("h", "m"), sum("m", "y")), on(LIKES, copy_u("h", "m"), sum("m", "y"))];
    let want = "cross reducer: column `rows of an edge type`: expected a Float tensor of rank 3, found a Float tensor of rank 2; \
                read it as stored, or convert the column";
    assert_eq!(
        text(g.multi_update_all(ranks, Cross::with(|rows: Vec<Tensor<3>>| rows[0].clone()))),
        want
    );
    g.nodes_mut("item").unwrap().insert("h", Tensor::<2>::ones([2, 5], &device)).unwrap();
    let want = "update_all: into node type `user`, edge type `user:likes:user` gives row shape [4], `item:has:user` gives [5]; make them equal";
    assert_eq!(text(g.update_all(copy_u("h", "m"), max("m", "y"))), want);
    g.nodes_mut("item").unwrap().remove("h");
    g.nodes_mut("item")
        .unwrap()
        .insert("h", Tensor::<2>::ones([2, 4], (&device, DType::F64)))
        .unwrap();
    let want = "update_all: into node type `user`, edge type `user:likes:user` gives element type F32, `item:has:user` gives F64; make them equal";
    assert_eq!(text(g.update_all(copy_u("h", "m"), max("m", "y"))), want);
}

struct Plain;
impl MessagePassing for Plain {}

struct Unlike;
impl MessagePassing for Unlike {
    fn message(&self, x_j: EdgeTensor, x_i: EdgeTensor, w: Option<EdgeTensor>) -> EdgeTensor {
        w.unwrap_or(x_i) + x_j
    }
}

#[test]
fn layers() {
    let g = graph();
    let device = Device::flex();
    let x = |rows: usize, columns: usize| Tensor::<2>::ones([rows, columns], &device);
    let likes = || g.edge_type(LIKES).unwrap();
    let has = || g.edge_type("has").unwrap();
    let want = "message_passing: edge type `item:has:user` joins different node types; give the features of both as `(x_src, x_dst)`";
    assert_eq!(text(Plain.try_propagate(has(), x(2, 1))), want);
    let want = "message_passing: `x` must have 3 rows (one per destination of the relation), got 4; give as many rows";
    assert_eq!(text(Plain.try_propagate(likes(), x(4, 1))), want);
    let want = "message_passing: `x` must have 2 rows (one per source of the relation), got 4; give as many rows";
    assert_eq!(text(Plain.try_propagate(has(), (x(4, 1), x(3, 1)))), want);
    let want = "message_passing: `edge_attr` must have 2 rows (one per edge of the relation), got 3; give as many rows";
    assert_eq!(text(Plain.try_propagate(likes().with_features(x(3, 1)), x(3, 1))), want);
    let want = "message_passing: `weight` must have 2 rows (one per edge of the relation), got 3; give as many rows";
    let weight = Tensor::<1>::ones([3], &device);
    assert_eq!(text(Plain.try_propagate(likes().with_weight(weight), x(3, 1))), want);
    let said = panic_text(|| drop(Unlike.propagate(likes().with_features(x(2, 3)), x(3, 4))));
    assert!(
        said.starts_with("edge_tensor: feature shapes [3] of `lhs` and [4] of `rhs`"),
        "{said}"
    );
    let double = Tensor::<2>::ones([2, 4], (&device, DType::F64));
    let unlike = || likes().with_features(double.clone());
    let said = panic_text(|| drop(Unlike.propagate(unlike(), x(3, 4))));
    assert_eq!(
        said,
        "edge_tensor: `x_j` has element type F32, `edge_attr` has F64; convert one of them"
    );
}
