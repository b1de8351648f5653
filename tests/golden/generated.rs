//! Generates cases that the folder lacks: other type names, ranks 4 and 5, node types without
//! in-edges or without edges, relations without edges, and more than ten relations. Expected
//! results are computed by loops in f64.

use std::collections::BTreeMap;

use burn_gnn::graph::Stream;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Map, Value, json};

use super::check_all;

/// Returns the number of failures over all CPU backends.
pub(crate) fn run() -> Result<usize, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let manifest = all().write(folder.path())?;
    let mut failed = 0;
    for (backend, device) in burn_gnn_testutil::named_devices() {
        failed += check_all(folder.path(), &manifest, &device.autodiff(), None)?
            .print(&format!("generated, {backend}"));
    }
    Ok(failed)
}

fn all() -> Vectors {
    let mut vectors = Vectors::default();
    operators(&mut vectors);
    segments(&mut vectors);
    // The order of names differs from the order of use, and from one graph to the other.
    for (graph, names) in [
        ("first", ["Paper", "author", "field of study", "ven-ue", "lonely"]),
        ("second", ["z", "b", "a", "B", "0"]),
    ] {
        several_types(&mut vectors, graph, names);
    }
    many_relations(&mut vectors);
    vectors
}

/// A dense tensor.
#[derive(Clone)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    fn zeros(rows: usize, features: &[usize]) -> Self {
        let shape = [&[rows], features].concat();
        Self { values: vec![0.0; shape.iter().product()], shape }
    }

    /// Random numbers with absolute value in `0.5..1.5`, so that quotients are small and no two
    /// numbers are equal.
    fn random(seed: u64, rows: usize, features: &[usize]) -> Self {
        let (stream, mut x) = (Stream::new(seed, "values", 0), Self::zeros(rows, features));
        for (i, x) in x.values.iter_mut().enumerate() {
            let u = 2.0 * stream.uniform(i as u64, 0);
            *x = if u < 1.0 { -0.5 - u } else { u - 0.5 };
        }
        x
    }

    fn features(&self) -> &[usize] {
        &self.shape[1..]
    }

    fn width(&self) -> usize {
        self.features().iter().product()
    }
}

/// Tensors of one file by name: element type, shape and bytes.
type File = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn reals(x: &Array) -> (Dtype, Vec<usize>, Vec<u8>) {
    (Dtype::F64, x.shape.clone(), x.values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn whole(ids: &[usize]) -> (Dtype, Vec<usize>, Vec<u8>) {
    (Dtype::I64, vec![ids.len()], ids.iter().flat_map(|&i| (i as i64).to_le_bytes()).collect())
}

/// Arrays by role.
type Roles = Vec<(String, Array)>;

/// Graph and tensors of a case.
#[derive(Default)]
struct Parts {
    inputs: Roles,
    params: Roles,
    ints: Vec<(String, Vec<usize>)>,
    outputs: Roles,
    grad_outputs: Roles,
    grads: Roles,
}

/// Builds a folder of golden vectors.
#[derive(Default)]
struct Vectors {
    graphs: Map<String, Value>,
    cases: Vec<Value>,
    files: BTreeMap<String, File>,
    seed: u64,
}

impl Vectors {
    fn random(&mut self, rows: usize, features: &[usize]) -> Array {
        self.seed += 1;
        Array::random(self.seed, rows, features)
    }

    fn graph(&mut self, name: &str, nodes: &[(&str, usize)], relations: &[Relation]) {
        let mut list = vec![];
        for r in relations {
            let place = |end: &str| format!("{name}/{}/{end}", r.name);
            let file = self.files.entry("graphs".to_owned()).or_default();
            file.insert(place("src"), whole(&r.src));
            file.insert(place("dst"), whole(&r.dst));
            list.push(json!({
                "src_type": r.src_type, "rel": r.name, "dst_type": r.dst_type, "num_edges": r.src.len(),
                "src": place("src"), "dst": place("dst"),
            }));
        }
        let counts: Map<String, Value> =
            nodes.iter().map(|&(ntype, n)| (ntype.to_owned(), n.into())).collect();
        self.graphs.insert(
            name.to_owned(),
            json!({"kind": "heterogeneous", "num_nodes": counts, "relations": list}),
        );
    }

    fn case(
        &mut self,
        family: &str,
        graph: Option<&str>,
        dtype: &str,
        fields: Value,
        parts: &Parts,
    ) {
        let number = self.cases.len();
        let mut case = fields.as_object().cloned().unwrap_or_default();
        let id = format!("generated-{family}-{number} {fields}");
        for (key, value) in [
            ("id", Value::from(id)),
            ("family", family.into()),
            ("graph", graph.into()),
            ("dtype", dtype.into()),
        ] {
            case.insert(key.to_owned(), value);
        }
        let file = self.files.entry(family.to_owned()).or_default();
        for (group, roles) in [
            ("inputs", &parts.inputs),
            ("params", &parts.params),
            ("outputs", &parts.outputs),
            ("grad_outputs", &parts.grad_outputs),
            ("grads", &parts.grads),
        ] {
            let mut names = Map::new();
            for (role, x) in roles {
                let name = format!("{number}/{group}/{role}");
                file.insert(name.clone(), reals(x));
                names.insert(role.clone(), name.into());
            }
            case.insert(group.to_owned(), names.into());
        }
        let mut names = Map::new();
        for (role, ids) in &parts.ints {
            let name = format!("{number}/ints/{role}");
            file.insert(name.clone(), whole(ids));
            names.insert(role.clone(), name.into());
        }
        case.insert("ints".to_owned(), names.into());
        self.cases.push(case.into());
    }

    /// Writes the tensors and returns the manifest.
    fn write(self, folder: &std::path::Path) -> Result<Value, String> {
        for (name, file) in &self.files {
            let mut views = vec![];
            for (tensor, (dtype, shape, bytes)) in file {
                views.push((
                    tensor.as_str(),
                    TensorView::new(*dtype, shape.clone(), bytes)
                        .map_err(|e| format!("{tensor}: {e}"))?,
                ));
            }
            let bytes = safetensors::serialize(views, None).map_err(|e| e.to_string())?;
            std::fs::write(folder.join(format!("{name}.safetensors")), bytes)
                .map_err(|e| e.to_string())?;
        }
        Ok(json!({"graphs": self.graphs, "cases": self.cases}))
    }
}

/// Edges of one type.
#[derive(Clone)]
struct Relation {
    src_type: &'static str,
    name: &'static str,
    dst_type: &'static str,
    src: Vec<usize>,
    dst: Vec<usize>,
}

impl Relation {
    /// Random edges from one of `num_src` nodes to one of the first `num_dst`.
    fn random(
        seed: u64,
        [src_type, name, dst_type]: [&'static str; 3],
        edges: usize,
        num_src: usize,
        num_dst: usize,
    ) -> Self {
        let stream = Stream::new(seed, "edges", 0);
        let endpoints = |end: u64, n: usize| {
            (0..edges).map(|e| (stream.uniform(e as u64, end) * n as f64) as usize).collect()
        };
        Self { src_type, name, dst_type, src: endpoints(0, num_src), dst: endpoints(1, num_dst) }
    }
}

/// Feature shape of a result, as NumPy broadcasts.
fn broadcast(l: &[usize], r: &[usize]) -> Vec<usize> {
    let rank = l.len().max(r.len());
    let axis = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    (0..rank).map(|i| axis(l, i).max(axis(r, i))).collect()
}

/// Returns the position, in an operand of feature shape `own`, that column `j` of the result reads.
fn offset(own: &[usize], out: &[usize], j: usize) -> usize {
    let (mut rest, mut stride, mut offset) = (j, 1, 0);
    for i in (0..out.len()).rev() {
        let place = rest % out[i];
        rest /= out[i];
        if let Some(k) = (i + own.len()).checked_sub(out.len()) {
            offset += if own[k] == 1 { 0 } else { place * stride };
            stride *= own[k];
        }
    }
    offset
}

/// An operand, and the row of it that every edge reads.
struct Operand<'a> {
    x: &'a Array,
    rows: &'a [usize],
}

/// A result with its derivatives by both operands.
fn apply(op: &str, a: f64, b: f64) -> [f64; 3] {
    match op {
        "add" => [a + b, 1.0, 1.0],
        "sub" => [a - b, 1.0, -1.0],
        "mul" | "dot" => [a * b, b, a],
        "div" => [a / b, 1.0 / b, -a / (b * b)],
        "copy_lhs" => [a, 1.0, 0.0],
        "copy_rhs" => [b, 0.0, 1.0],
        other => panic!("no operator `{other}`"),
    }
}

/// One row per edge.
fn messages(op: &str, l: &Operand<'_>, r: &Operand<'_>) -> Array {
    let out = broadcast(l.x.features(), r.x.features());
    let mut m = Array::zeros(l.rows.len(), &out);
    each(l, r, &out, |e, j, i, k| {
        m.values[e * out.iter().product::<usize>() + j] = apply(op, l.x.values[i], r.x.values[k])[0]
    });
    m
}

/// Gradients of both operands from those of the messages.
fn messages_grad(op: &str, l: &Operand<'_>, r: &Operand<'_>, dm: &Array) -> [Array; 2] {
    let mut grads = [l.x, r.x].map(|x| Array::zeros(x.shape[0], x.features()));
    each(l, r, dm.features(), |e, j, i, k| {
        let [_, a, b] = apply(op, l.x.values[i], r.x.values[k]);
        let d = dm.values[e * dm.width() + j];
        grads[0].values[i] += d * a;
        grads[1].values[k] += d * b;
    });
    grads
}

/// Calls `f` with every edge, column of `out`, and the entries of both operands that they read.
fn each(
    l: &Operand<'_>,
    r: &Operand<'_>,
    out: &[usize],
    mut f: impl FnMut(usize, usize, usize, usize),
) {
    let entry = |o: &Operand<'_>, e: usize, j: usize| {
        o.rows[e] * o.x.width() + offset(o.x.features(), out, j)
    };
    for e in 0..l.rows.len() {
        for j in 0..out.iter().product::<usize>() {
            f(e, j, entry(l, e, j), entry(r, e, j));
        }
    }
}

/// Rows reduced by destination, and the derivative of the result's entry by that of every message.
fn reduce(how: &str, m: &Array, dst: &[usize], n: usize) -> (Array, Array) {
    let (mut out, mut weight) =
        (Array::zeros(n, m.features()), Array::zeros(m.shape[0], m.features()));
    let width = m.width();
    for v in 0..n {
        let edges: Vec<usize> = (0..dst.len()).filter(|&e| dst[e] == v).collect();
        for j in 0..width {
            let value = |e: usize| m.values[e * width + j];
            let by_value = |&a: &usize, &b: &usize| value(a).total_cmp(&value(b));
            let taken: Vec<usize> = match how {
                "sum" | "mean" => edges.clone(),
                "max" => edges.iter().copied().max_by(by_value).into_iter().collect(),
                "min" => edges.iter().copied().min_by(by_value).into_iter().collect(),
                other => panic!("no reducer `{other}`"),
            };
            let factor = if how == "mean" { 1.0 / edges.len() as f64 } else { 1.0 };
            for e in taken {
                out.values[v * width + j] += factor * value(e);
                weight.values[e * width + j] = factor;
            }
        }
    }
    (out, weight)
}

/// Returns the gradient of the messages of [`reduce`] from a cotangent of the destinations.
fn reduce_grad(c: &Array, weight: &Array, dst: &[usize]) -> Array {
    let mut dm = weight.clone();
    let width = dm.width();
    for (e, &v) in dst.iter().enumerate() {
        for j in 0..width {
            dm.values[e * width + j] *= c.values[v * width + j];
        }
    }
    dm
}

/// Softmax over rows of one group, and its gradient from a cotangent.
fn softmax(x: &Array, group: &[usize], c: &Array) -> [Array; 2] {
    let (mut out, mut grad) = (x.clone(), x.clone());
    let width = x.width();
    for (i, &g) in group.iter().enumerate() {
        for j in 0..width {
            let mates = || (0..group.len()).filter(|&k| group[k] == g).map(|k| k * width + j);
            let sum = |f: &dyn Fn(usize) -> f64| mates().map(f).sum::<f64>();
            let total = sum(&|k| x.values[k].exp());
            let at = i * width + j;
            out.values[at] = x.values[at].exp() / total;
            let mean = sum(&|k| c.values[k] * x.values[k].exp() / total);
            grad.values[at] = out.values[at] * (c.values[at] - mean);
        }
    }
    [out, grad]
}

fn one(role: &str, x: &Array) -> Roles {
    vec![(role.to_owned(), x.clone())]
}

/// Feature shapes that broadcast, of ranks up to 5 with the axis of rows; their last axes are equal.
const SHAPES: [(&[usize], &[usize]); 6] = [
    (&[2, 1, 3], &[1, 2, 3]),
    (&[1, 2, 2, 3], &[2, 1, 2, 3]),
    (&[3], &[2, 2, 3]),
    (&[2, 1, 2, 3], &[3]),
    (&[2, 3], &[2, 1, 1, 3]),
    (&[1, 2, 3], &[3]),
];

fn operators(vectors: &mut Vectors) {
    const NAMES: [&str; 3] = ["shop", "sells to", "Kunde"];
    let (num_src, num_dst, edges) = (5, 6, 14);
    let r = Relation::random(1, NAMES, edges, num_src, num_dst - 1);
    vectors.graph("two", &[("Kunde", num_dst), ("shop", num_src)], std::slice::from_ref(&r));
    let own: Vec<usize> = (0..edges).collect();
    let target = |t: &str| match t {
        "u" => (&r.src, num_src),
        "v" => (&r.dst, num_dst),
        _ => (&own, edges),
    };
    // Operands that broadcast, operands with one number per row, and operands that copies do not
    // read.
    let scalar: (&[usize], &[usize]) = (&[2, 1, 2, 2], &[]);
    for (l, s) in SHAPES.into_iter().chain([scalar]) {
        for op in ["add", "sub", "mul", "div", "copy_lhs", "copy_rhs"] {
            for how in ["sum", "mean", "max", "min"] {
                let (x, w) = (vectors.random(num_src, l), vectors.random(edges, s));
                gspmm(vectors, &r, [op, how], [&x, &w], num_dst);
            }
        }
    }
    for (l, s) in SHAPES {
        for op in ["add", "sub", "mul", "div", "dot", "copy_lhs", "copy_rhs"] {
            for targets in [["u", "v"], ["e", "u"], ["v", "e"]] {
                let [(l_rows, l_count), (r_rows, r_count)] = targets.map(target);
                let (x, y) = (vectors.random(l_count, l), vectors.random(r_count, s));
                gsddmm(
                    vectors,
                    op,
                    targets,
                    [&Operand { x: &x, rows: l_rows }, &Operand { x: &y, rows: r_rows }],
                );
            }
        }
    }
    for features in [&[2, 1, 3][..], &[2, 2, 1, 2]] {
        for (norm_by, group) in [("dst", &r.dst), ("src", &r.src)] {
            for eids in [None, Some(vec![7, 0, 13, 5, 2, 3, 11])] {
                let group: Vec<usize> = eids.as_ref().map_or_else(
                    || group.clone(),
                    |ids| ids.iter().map(|&e: &usize| group[e]).collect(),
                );
                let (x, c) =
                    (vectors.random(group.len(), features), vectors.random(group.len(), features));
                let [out, grad] = softmax(&x, &group, &c);
                let ints = eids.into_iter().map(|ids| ("eids".to_owned(), ids)).collect();
                let parts = Parts {
                    inputs: one("logits", &x),
                    ints,
                    outputs: one("out", &out),
                    grad_outputs: one("out", &c),
                    grads: one("logits", &grad),
                    ..Parts::default()
                };
                vectors.case(
                    "edge_softmax",
                    Some("two"),
                    "f64",
                    json!({"norm_by": norm_by}),
                    &parts,
                );
            }
        }
    }
}

/// The operands that an operator reads, by role.
fn operands(op: &str, [l, r]: [&Array; 2]) -> Roles {
    match op {
        "copy_lhs" => one("lhs", l),
        "copy_rhs" => one("rhs", r),
        _ => [one("lhs", l), one("rhs", r)].concat(),
    }
}

/// The unused operand of a copy: one number, which broadcasts with any shape.
fn unread() -> Array {
    Array::zeros(1, &[])
}

fn gspmm(
    vectors: &mut Vectors,
    r: &Relation,
    [op, how]: [&str; 2],
    [x, w]: [&Array; 2],
    num_dst: usize,
) {
    let (own, zeros, unread) =
        ((0..r.src.len()).collect::<Vec<_>>(), vec![0; r.src.len()], unread());
    let other = Operand { x: &unread, rows: &zeros };
    let (l, s) = (Operand { x, rows: &r.src }, Operand { x: w, rows: &own });
    let (l, s) = match op {
        "copy_lhs" => (l, other),
        "copy_rhs" => (other, s),
        _ => (l, s),
    };
    let m = messages(op, &l, &s);
    let (out, weight) = reduce(how, &m, &r.dst, num_dst);
    let c = vectors.random(num_dst, out.features());
    let [dl, dr] = messages_grad(op, &l, &s, &reduce_grad(&c, &weight, &r.dst));
    let parts = Parts {
        inputs: operands(op, [x, w]),
        outputs: one("out", &out),
        grad_outputs: one("out", &c),
        grads: operands(op, [&dl, &dr]),
        ..Parts::default()
    };
    vectors.case("gspmm", Some("two"), "f64", json!({"op": op, "reduce": how}), &parts);
}

fn gsddmm(vectors: &mut Vectors, op: &str, [lt, rt]: [&str; 2], [x, y]: [&Operand<'_>; 2]) {
    let (zeros, unread) = (vec![0; x.rows.len()], unread());
    let other = Operand { x: &unread, rows: &zeros };
    let (l, r) = match op {
        "copy_lhs" => (x, &other),
        "copy_rhs" => (&other, y),
        _ => (x, y),
    };
    let m = messages(op, l, r);
    // A dot product sums over the last axis.
    let last = if op == "dot" { m.shape[m.shape.len() - 1] } else { 1 };
    let mut out = m.clone();
    if op == "dot" {
        out.values = m.values.chunks(last).map(|row| row.iter().sum()).collect();
        *out.shape.last_mut().expect("an axis of edges") = 1;
    }
    let c = vectors.random(out.shape[0], out.features());
    let dm =
        Array { values: (0..m.values.len()).map(|i| c.values[i / last]).collect(), shape: m.shape };
    let [dl, dr] = messages_grad(op, l, r, &dm);
    let parts = Parts {
        inputs: operands(op, [x.x, y.x]),
        outputs: one("out", &out),
        grad_outputs: one("out", &c),
        grads: operands(op, [&dl, &dr]),
        ..Parts::default()
    };
    vectors.case(
        "gsddmm",
        Some("two"),
        "f64",
        json!({"op": op, "lhs_target": lt, "rhs_target": rt}),
        &parts,
    );
}

fn segments(vectors: &mut Vectors) {
    let lengths = vec![3, 0, 2, 1];
    let of: Vec<usize> = lengths.iter().enumerate().flat_map(|(i, &n)| vec![i; n]).collect();
    for features in [&[2, 1, 3][..], &[2, 2, 1, 2]] {
        for how in ["sum", "mean", "max", "min", "softmax"] {
            let x = vectors.random(of.len(), features);
            let (out, c, grad) = if how == "softmax" {
                let c = vectors.random(of.len(), features);
                let [out, grad] = softmax(&x, &of, &c);
                (out, c, grad)
            } else {
                let (out, weight) = reduce(how, &x, &of, lengths.len());
                let c = vectors.random(lengths.len(), features);
                let grad = reduce_grad(&c, &weight, &of);
                (out, c, grad)
            };
            let parts = Parts {
                inputs: one("value", &x),
                ints: vec![("seglen".to_owned(), lengths.clone())],
                outputs: one("out", &out),
                grad_outputs: one("out", &c),
                grads: one("value", &grad),
                ..Parts::default()
            };
            vectors.case("segment_reduce", None, "f64", json!({"reduce": how}), &parts);
        }
    }
}

/// A graph of several types: `author` and `venue` have no in-edges, `topic` no out-edges, `lonely` neither.
struct Typed {
    name: &'static str,
    nodes: BTreeMap<&'static str, usize>,
    /// In the order of (source type, relation).
    relations: Vec<Relation>,
}

impl Typed {
    /// Numbers of the relations into a type.
    fn into(&self, ntype: &str) -> Vec<usize> {
        (0..self.relations.len()).filter(|&r| self.relations[r].dst_type == ntype).collect()
    }

    fn is_source(&self, ntype: &str) -> bool {
        self.relations.iter().any(|r| r.src_type == ntype)
    }
}

fn several_types(
    vectors: &mut Vectors,
    name: &'static str,
    [paper, author, topic, venue, lonely]: [&'static str; 5],
) {
    let counts = [(paper, 6), (author, 5), (topic, 4), (venue, 3), (lonely, 2)];
    let nodes = BTreeMap::from(counts);
    let relation = |seed: u64, endpoints: [&'static str; 3], edges| {
        // The last node of every type has no in-edges.
        Relation::random(seed, endpoints, edges, nodes[endpoints[0]], nodes[endpoints[2]] - 1)
    };
    let mut relations = vec![
        relation(1, [paper, "cites", paper], 12),
        relation(2, [author, "Writes", paper], 9),
        relation(3, [venue, "in", paper], 5),
        relation(4, [paper, "has topic", topic], 7),
        relation(5, [venue, "never", topic], 0),
    ];
    vectors.graph(name, &counts, &relations);
    relations.sort_by_key(|r| (r.src_type, r.name));
    let g = Typed { name, nodes, relations };
    for (features, weights) in
        [(&[3][..], &[1][..]), (&[2, 1, 3], &[2, 3]), (&[1, 2, 1, 3], &[2, 1, 2, 3])]
    {
        for message in ["copy_u", "u_add_e", "u_mul_e"] {
            for (how, cross) in [
                ("sum", "sum"),
                ("mean", "mean"),
                ("sum", "max"),
                ("max", "max"),
                ("min", "min"),
                ("sum", "stack"),
            ] {
                hetero(vectors, &g, [features, weights], [message, how, cross]);
            }
            for how in ["sum", "mean", "max", "min"] {
                hetero(vectors, &g, [features, weights], [message, how, "joint"]);
            }
        }
    }
    for aggregate in ["sum", "mean"] {
        hetero_graph_conv(vectors, &g, aggregate);
    }
}

/// One number for every relation into a type and entry of a row there: the derivative of the combined row.
fn combine(cross: &str, same: bool, parts: &[Array], has: &[Vec<bool>]) -> (Array, Vec<Array>) {
    let (n, width) = (parts[0].shape[0], parts[0].width());
    let mut weights: Vec<Array> = parts.iter().map(|p| Array::zeros(n, p.features())).collect();
    let mut out = Array::zeros(n, parts[0].features());
    for i in 0..n * width {
        let among: Vec<usize> = (0..parts.len()).filter(|&r| !same || has[r][i / width]).collect();
        let by_value = |&a: &usize, &b: &usize| parts[a].values[i].total_cmp(&parts[b].values[i]);
        let taken: Vec<usize> = match cross {
            "sum" | "mean" => among,
            "max" => among.into_iter().max_by(by_value).into_iter().collect(),
            "min" => among.into_iter().min_by(by_value).into_iter().collect(),
            other => panic!("no cross reducer `{other}`"),
        };
        let factor = if cross == "mean" { 1.0 / parts.len() as f64 } else { 1.0 };
        for r in taken {
            out.values[i] += factor * parts[r].values[i];
            weights[r].values[i] = factor;
        }
    }
    (out, weights)
}

fn hetero(
    vectors: &mut Vectors,
    g: &Typed,
    [features, weights]: [&[usize]; 2],
    [message, how, cross]: [&str; 3],
) {
    let op = match message {
        "copy_u" => "copy_lhs",
        "u_add_e" => "add",
        _ => "mul",
    };
    let h: BTreeMap<&str, Array> =
        g.nodes.iter().map(|(&t, &n)| (t, vectors.random(n, features))).collect();
    let w: Vec<Array> = g.relations.iter().map(|r| vectors.random(r.src.len(), weights)).collect();
    let (unread, ids) = (unread(), |r: &Relation| (0..r.src.len()).collect::<Vec<_>>());
    let rows: Vec<Vec<usize>> = g
        .relations
        .iter()
        .map(|r| if op == "copy_lhs" { vec![0; r.src.len()] } else { ids(r) })
        .collect();
    let operands = |i: usize| {
        let r = &g.relations[i];
        let other = if op == "copy_lhs" { &unread } else { &w[i] };
        (Operand { x: &h[r.src_type], rows: &r.src }, Operand { x: other, rows: &rows[i] })
    };
    let m: Vec<Array> = (0..g.relations.len())
        .map(|i| {
            let (l, r) = operands(i);
            messages(op, &l, &r)
        })
        .collect();
    let mut parts = Parts::default();
    let mut dm = m.clone();
    let mut order = Map::new();
    for (&ntype, &n) in &g.nodes {
        let into = g.into(ntype);
        if into.is_empty() {
            continue;
        }
        let names: Vec<&str> = into.iter().map(|&i| g.relations[i].name).collect();
        order.insert(ntype.to_owned(), names.into());
        let (out, c);
        if cross == "joint" {
            let dst: Vec<usize> = into.iter().flat_map(|&i| g.relations[i].dst.clone()).collect();
            let values = into.iter().flat_map(|&i| m[i].values.clone()).collect();
            let all = Array { shape: [&[dst.len()], m[into[0]].features()].concat(), values };
            let reduced = reduce(how, &all, &dst, n);
            out = reduced.0;
            c = vectors.random(n, out.features());
            let grad = reduce_grad(&c, &reduced.1, &dst);
            let mut rest = &grad.values[..];
            for &i in &into {
                let (own, others) = rest.split_at(m[i].values.len());
                dm[i].values = own.to_vec();
                rest = others;
            }
        } else {
            let reduced: Vec<(Array, Array)> =
                into.iter().map(|&i| reduce(how, &m[i], &g.relations[i].dst, n)).collect();
            let rows: Vec<Array> = reduced.iter().map(|(y, _)| y.clone()).collect();
            let width = rows[0].width();
            // Cotangents of the rows of each relation.
            let by_relation: Vec<Array>;
            if cross == "stack" {
                let shape = [&[rows.len()], rows[0].features()].concat();
                let mut stack = Array::zeros(n, &shape);
                c = vectors.random(n, &shape);
                let place = |r: usize, i: usize| (i / width * rows.len() + r) * width + i % width;
                let mut cotangents = rows.clone();
                for (r, y) in rows.iter().enumerate() {
                    for i in 0..n * width {
                        stack.values[place(r, i)] = y.values[i];
                        cotangents[r].values[i] = c.values[place(r, i)];
                    }
                }
                (out, by_relation) = (stack, cotangents);
            } else {
                let has: Vec<Vec<bool>> = into
                    .iter()
                    .map(|&i| (0..n).map(|v| g.relations[i].dst.contains(&v)).collect())
                    .collect();
                let same = how == cross && matches!(how, "max" | "min");
                let combined = combine(cross, same, &rows, &has);
                out = combined.0;
                c = vectors.random(n, out.features());
                let times = |w: &Array| Array {
                    values: w.values.iter().zip(&c.values).map(|(w, c)| w * c).collect(),
                    shape: w.shape.clone(),
                };
                by_relation = combined.1.iter().map(times).collect();
            }
            for ((&i, (_, weight)), c) in into.iter().zip(&reduced).zip(&by_relation) {
                dm[i] = reduce_grad(c, weight, &g.relations[i].dst);
            }
        }
        parts.outputs.push((format!("out/{ntype}"), out));
        parts.grad_outputs.push((format!("out/{ntype}"), c));
    }
    let mut dh: BTreeMap<&str, Array> =
        h.iter().map(|(&t, x)| (t, Array::zeros(x.shape[0], x.features()))).collect();
    for (i, r) in g.relations.iter().enumerate() {
        let (left, right) = operands(i);
        let [dl, dr] = messages_grad(op, &left, &right, &dm[i]);
        let sum = dh.get_mut(r.src_type).expect("a type of the graph");
        sum.values.iter_mut().zip(&dl.values).for_each(|(a, b)| *a += b);
        if op != "copy_lhs" {
            parts.inputs.push((format!("w/{}", r.name), w[i].clone()));
            parts.grads.push((format!("w/{}", r.name), dr));
        }
    }
    for (&ntype, x) in &h {
        parts.inputs.push((ntype.to_owned(), x.clone()));
        // PyTorch has no gradient for tensors that no message reads.
        if g.is_source(ntype) {
            parts.grads.push((ntype.to_owned(), dh[ntype].clone()));
        }
    }
    let op = if cross == "joint" { "update_all" } else { "multi_update_all" };
    let mut fields = json!({"op": op, "message": message, "reduce": how, "cross": cross});
    if cross == "stack" {
        fields["stack_order"] = order.into();
    }
    vectors.case("hetero", Some(g.name), "f64", fields, &parts);
}

/// `x W` of rows `[n, a]` and a matrix `[a, b]`.
fn product(x: &[f64], w: &[f64], a: usize, b: usize) -> Vec<f64> {
    x.chunks(a)
        .flat_map(|row| (0..b).map(move |j| (0..a).map(|i| row[i] * w[i * b + j]).sum()))
        .collect()
}

/// Adds `x^T y` of rows `[n, a]` and `[n, b]` to a matrix `[a, b]`.
fn add_outer(w: &mut [f64], x: &[f64], y: &[f64], a: usize, b: usize) {
    for (x, y) in x.chunks(a).zip(y.chunks(b)) {
        (0..a * b).for_each(|i| w[i] += x[i / b] * y[i % b]);
    }
}

fn transpose(w: &[f64], a: usize, b: usize) -> Vec<f64> {
    (0..a * b).map(|i| w[i % a * b + i / a]).collect()
}

/// GraphConv with norm `right` in every relation: the mean of sources, times a matrix, plus a bias.
fn hetero_graph_conv(vectors: &mut Vectors, g: &Typed, aggregate: &str) {
    const OUT: usize = 4;
    let mut parts = Parts::default();
    // Every type has its own feature size; a type without edges has none.
    let linked = |t: &str| g.is_source(t) || !g.into(t).is_empty();
    let mut x: BTreeMap<&str, Array> = BTreeMap::new();
    for (i, (&ntype, &n)) in g.nodes.iter().enumerate().filter(|(_, (ntype, _))| linked(ntype)) {
        x.insert(ntype, vectors.random(n, &[2 + i]));
    }
    let mut dx: BTreeMap<&str, Array> =
        x.iter().map(|(&t, x)| (t, Array::zeros(x.shape[0], x.features()))).collect();
    for (&ntype, &n) in &g.nodes {
        let into = g.into(ntype);
        if into.is_empty() {
            continue;
        }
        let factor = if aggregate == "mean" { 1.0 / into.len() as f64 } else { 1.0 };
        let (mut out, c) = (Array::zeros(n, &[OUT]), vectors.random(n, &[OUT]));
        for i in into {
            let r = &g.relations[i];
            let rows = &x[r.src_type];
            let d = rows.width();
            let (w, bias) = (vectors.random(d, &[OUT]), vectors.random(OUT, &[]));
            let zero = Array::zeros(1, &[]);
            let zeros = vec![0; r.src.len()];
            let (left, right) =
                (Operand { x: rows, rows: &r.src }, Operand { x: &zero, rows: &zeros });
            let (mean, weight) = reduce("mean", &messages("copy_lhs", &left, &right), &r.dst, n);
            let y = product(&mean.values, &w.values, d, OUT);
            let c: Vec<f64> = c.values.iter().map(|c| c * factor).collect();
            let (mut dw, mut db) = (Array::zeros(d, &[OUT]), Array::zeros(OUT, &[]));
            add_outer(&mut dw.values, &mean.values, &c, d, OUT);
            for k in 0..n * OUT {
                out.values[k] += factor * (y[k] + bias.values[k % OUT]);
                db.values[k % OUT] += c[k];
            }
            let dmean = Array {
                shape: mean.shape,
                values: product(&c, &transpose(&w.values, d, OUT), OUT, d),
            };
            let [dl, _] =
                messages_grad("copy_lhs", &left, &right, &reduce_grad(&dmean, &weight, &r.dst));
            let sum = dx.get_mut(r.src_type).expect("a type of the graph");
            sum.values.iter_mut().zip(&dl.values).for_each(|(a, b)| *a += b);
            for (name, value, grad) in [("weight", w, dw), ("bias", bias, db)] {
                let name = format!("mods.{}.{name}", r.name);
                parts.grads.push((format!("param/{name}"), grad));
                parts.params.push((name, value));
            }
        }
        parts.outputs.push((format!("out/{ntype}"), out));
        parts.grad_outputs.push((format!("out/{ntype}"), c));
    }
    for (ntype, x) in x {
        parts.inputs.push((ntype.to_owned(), x));
        if g.is_source(ntype) {
            parts.grads.push((ntype.to_owned(), dx[ntype].clone()));
        }
    }
    let config = json!({"aggregate": aggregate, "module": "GraphConv", "norm": "right"});
    vectors.case(
        "layers",
        Some(g.name),
        "f32",
        json!({"layer": "HeteroGraphConv", "config": config}),
        &parts,
    );
}

/// RelGraphConv with more than ten edge types, whose names sort otherwise than their numbers.
fn many_relations(vectors: &mut Vectors) {
    const TYPES: usize = 12;
    let (n, a, b, edges) = (6, 3, 2, 40);
    let r = Relation::random(6, ["N", "E", "N"], edges, n, n - 1);
    vectors.graph("many", &[("N", n)], std::slice::from_ref(&r));
    // Type 7 has no edges.
    let types: Vec<usize> =
        (0..edges).map(|e| e * 5 % TYPES).map(|t| if t == 7 { 11 } else { t }).collect();
    let (x, w, bias) =
        (vectors.random(n, &[a]), vectors.random(TYPES, &[a, b]), vectors.random(b, &[]));
    let c = vectors.random(n, &[b]);
    let mut out = Array::zeros(n, &[b]);
    let (mut dx, mut dw, mut db) =
        (Array::zeros(n, &[a]), Array::zeros(TYPES, &[a, b]), Array::zeros(b, &[]));
    for (i, out) in out.values.iter_mut().enumerate() {
        *out = bias.values[i % b];
        db.values[i % b] += c.values[i];
    }
    for (e, &t) in types.iter().enumerate() {
        let (u, v) = (r.src[e] * a, r.dst[e] * b);
        let matrix = t * a * b..(t + 1) * a * b;
        let (from, cotangent) = (&x.values[u..u + a], &c.values[v..v + b]);
        let y = product(from, &w.values[matrix.clone()], a, b);
        out.values[v..v + b].iter_mut().zip(y).for_each(|(out, y)| *out += y);
        add_outer(&mut dw.values[matrix.clone()], from, cotangent, a, b);
        let grad = product(cotangent, &transpose(&w.values[matrix], a, b), b, a);
        dx.values[u..u + a].iter_mut().zip(grad).for_each(|(dx, grad)| *dx += grad);
    }
    let parts = Parts {
        inputs: one("x", &x),
        params: [one("linear_r.W", &w), one("h_bias", &bias)].concat(),
        ints: vec![("etypes".to_owned(), types)],
        outputs: one("out", &out),
        grad_outputs: one("out", &c),
        grads: [one("x", &dx), one("param/linear_r.W", &dw), one("param/h_bias", &db)].concat(),
    };
    let config =
        json!({"num_rels": TYPES, "regularizer": null, "num_bases": null, "self_loop": false});
    vectors.case(
        "layers",
        Some("many"),
        "f32",
        json!({"layer": "RelGraphConv", "config": config}),
        &parts,
    );
}
