//! Graphs in DGL's chunked format.

use std::fs;
use std::path::Path;

use burn::tensor::DType;
use burn_gnn_dist::{
    ChunkedGraph, DistError, PartitionMethod, load_partition, load_partition_book, partition_graph,
    verify_partition,
};
use burn_gnn_graph::{EdgeType, Frame, Graph, HomoId};
use serde_json::{Value, json};

use crate::errors::edit;
use crate::partition::{config, files, with_features};

fn npy(path: &Path, descr: &str, shape: &[usize], body: &[u8]) {
    let axes: Vec<String> = shape.iter().map(|n| format!("{n},")).collect();
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", axes.join(" "));
    text.push_str(&" ".repeat((10 + text.len() + 1).next_multiple_of(64) - 11 - text.len()));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out.extend(body);
    fs::write(path, out).unwrap();
}

/// `n` in three pieces, the second of which is empty.
fn pieces(n: usize) -> [usize; 3] {
    [n / 3, 0, n - n / 3]
}

fn columns(dir: &Path, frame: &Frame, name: &str) -> Value {
    let mut out = json!({});
    for (column, c) in frame.columns() {
        let data = c.to_data();
        let descr = match data.dtype() {
            DType::F64 => "<f8",
            DType::F32 => "<f4",
            DType::I64 => "<i8",
            DType::Bool(_) => "|b1",
            other => panic!("{other:?}"),
        };
        let (rows, bytes) = (data.shape().as_slice()[0], data.as_bytes());
        let (width, mut at, mut names) = (bytes.len() / rows.max(1), 0, vec![]);
        for (i, n) in pieces(rows).into_iter().enumerate() {
            let file = format!("{name}-{column}-{i}.npy");
            let shape: Vec<usize> =
                std::iter::once(n).chain(data.shape().as_slice()[1..].iter().copied()).collect();
            npy(&dir.join(&file), descr, &shape, &bytes[at * width..(at + n) * width]);
            at += n;
            names.push(file);
        }
        out[column] = json!({ "format": { "name": "numpy" }, "data": names });
    }
    out
}

/// Writes a graph as DGL's tool does, types in the reverse of their sorted order.
pub(crate) fn write(dir: &Path, g: &Graph) {
    let schema = g.schema();
    let (mut edges, mut node_data, mut edge_data) = (json!({}), json!({}), json!({}));
    for (t, name) in schema.ntypes().iter().enumerate() {
        node_data[name] = columns(dir, &g.node_frames()[t], name);
    }
    for (t, etype) in schema.etypes().iter().enumerate() {
        let (r, file) = (&g.relations()[t], etype.to_string().replace(':', "-"));
        let (mut at, mut names) = (0, vec![]);
        for (i, n) in pieces(r.num_edges()).into_iter().enumerate() {
            let line = |e: usize| format!("{} {}\n", r.src()[e], r.dst()[e]);
            names.push(format!("{file}-{i}.txt"));
            fs::write(dir.join(&names[i]), (at..at + n).map(line).collect::<String>()).unwrap();
            at += n;
        }
        edges[etype.to_string()] =
            json!({ "format": { "name": "csv", "delimiter": " " }, "data": names });
        edge_data[etype.to_string()] = columns(dir, &g.edge_frames()[t], &file);
    }
    let meta = json!({
        "graph_name": "g",
        "node_type": schema.ntypes().iter().rev().collect::<Vec<_>>(),
        "num_nodes_per_chunk": g.node_counts().iter().rev().map(|&n| pieces(n)).collect::<Vec<_>>(),
        "edge_type": schema.etypes().iter().rev().map(ToString::to_string).collect::<Vec<_>>(),
        "num_edges_per_chunk": g.relations().iter().rev().map(|r| pieces(r.num_edges())).collect::<Vec<_>>(),
        "edges": edges,
        "node_data": node_data,
        "edge_data": edge_data,
    });
    fs::write(dir.join("metadata.json"), serde_json::to_vec(&meta).unwrap()).unwrap();
}

#[test]
fn parts_are_those_of_the_graph_in_memory() {
    let g = with_features();
    let (input, one, two) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(input.path(), &g);
    let chunked = ChunkedGraph::open(input.path().join("metadata.json")).unwrap();
    assert_eq!(chunked.graph().relations(), g.relations());
    for (hops, reshuffle) in [(1, true), (2, false)] {
        let config =
            config(3, PartitionMethod::Metis).with_num_hops(hops).with_reshuffle(reshuffle);
        let parts = partition_graph(&g, &config).unwrap();
        parts.write(one.path()).unwrap();
        let from_files = chunked.partition(&config).unwrap();
        let json = from_files.write(two.path()).unwrap();
        let strip = |dir: &Path| {
            files(dir)
                .into_iter()
                .map(|(p, b)| (p.strip_prefix(dir).unwrap().to_owned(), b))
                .collect::<Vec<_>>()
        };
        assert!(strip(one.path()) == strip(two.path()));
        assert!(verify_partition(&json, Some(&g)).unwrap().is_ok());
        assert_eq!(from_files.part(1).unwrap(), parts.part(1).unwrap());
    }
}

/// The metadata's global ids and the book's lead to the same nodes and edges of the input.
#[test]
fn both_numberings_name_the_same_nodes() {
    let g = with_features();
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(input.path(), &g);
    let chunked = ChunkedGraph::open(input.path().join("metadata.json")).unwrap();
    let json =
        chunked.partition(&config(3, PartitionMethod::Random)).unwrap().write(out.path()).unwrap();
    let book = load_partition_book(&json).unwrap();
    let (ids, eids) = (chunked.node_ids(), chunked.edge_ids());
    // In the order of the metadata, which is not sorted; ids on a border belong to the later type.
    assert_eq!(ids.names(), ["empty", "c", "b", "a"]);
    assert_eq!(ids.to_typed(HomoId(0)).unwrap(), ("c", 0));
    assert_eq!(ids.to_typed(HomoId(24)).unwrap(), ("b", 0));
    assert_eq!(ids.to_homo("a", 59).unwrap(), HomoId(123));
    assert!(ids.to_typed(HomoId(124)).is_err() && eids.to_typed(HomoId(1 << 40)).is_err());
    let (mut nodes, mut edges) = (vec![0; 124], vec![0; g.total_edges()]);
    for p in 0..3 {
        let part = load_partition(&json, p).unwrap();
        // An id of the book, by way of the original id, to the metadata's numbering and back.
        let node = |i: usize| {
            let ours = book.map_to_per_ntype(HomoId(part.global_nids()[i])).unwrap();
            let theirs = (book.ntypes()[ours.ty].as_str(), part.original_nids()[i]);
            let global = ids.to_homo(theirs.0, theirs.1).unwrap();
            assert_eq!(ids.to_typed(global).unwrap(), theirs);
            global.0 as usize
        };
        (0..part.num_inner_nodes()).for_each(|i| nodes[node(i)] += 1);
        for j in 0..part.src().len() {
            let ours = book.map_to_per_etype(HomoId(part.global_eids()[j])).unwrap();
            let etype: &EdgeType = &book.etypes()[ours.ty];
            let (name, id) = (etype.to_string(), part.original_eids()[j]);
            let global = eids.to_homo(&name, id).unwrap();
            assert_eq!(eids.to_typed(global).unwrap(), (name.as_str(), id));
            edges[global.0 as usize] += usize::from(j < part.num_inner_edges());
            // The endpoints of the edge of the input are the nodes of the same numbering.
            let r = g.relation(etype).unwrap();
            let end = |ntype: &str, id: u32| ids.to_homo(ntype, id.into()).unwrap().0 as usize;
            assert_eq!(node(part.src()[j] as usize), end(&etype.src, r.src()[id as usize]));
            assert_eq!(node(part.dst()[j] as usize), end(&etype.dst, r.dst()[id as usize]));
        }
    }
    assert!(nodes.iter().all(|&n| n == 1) && edges.iter().all(|&n| n == 1));
    assert!(ids.to_homo("z", 0).unwrap_err().to_string().contains("unknown node type `z`"));
}

#[test]
fn errors() {
    let with = |f: &dyn Fn(&Path)| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &with_features());
        f(dir.path());
        match ChunkedGraph::open(dir.path().join("metadata.json")) {
            Ok(_) => String::new(),
            Err(e) => {
                assert!(
                    matches!(
                        e,
                        DistError::Format { .. }
                            | DistError::Io { .. }
                            | DistError::Graph(_)
                            | DistError::Data(_)
                    ),
                    "{e:?}"
                );
                e.to_string()
            }
        }
    };
    let meta = |f: &dyn Fn(&mut Value)| with(&|d| edit(d.join("metadata.json"), f));
    let cases = [
        (
            with(&|d| fs::write(d.join("a-self-a-2.txt"), "1 2\n3 x\n").unwrap()),
            "a-self-a-2.txt:2:2: expected an int64, got \"x\"",
        ),
        (with(&|d| fs::write(d.join("a-self-a-2.txt"), "1 2 3\n").unwrap()), "a-self-a-2.txt:1:"),
        (
            with(&|d| fs::write(d.join("a-self-a-2.txt"), "1 2\n").unwrap()),
            "a-self-a-2.txt: number of edges: expected",
        ),
        (with(&|d| fs::remove_file(d.join("a-h-0.npy")).unwrap()), "a-h-0.npy"),
        (
            with(&|d| fs::write(d.join("a-h-0.npy"), b"nothing").unwrap()),
            "a-h-0.npy: expected an .npy header",
        ),
        (with(&|d| npy(&d.join("a-h-2.npy"), "<f8", &[40, 4], &[0; 1280])), "expected rows of"),
        (
            with(&|d| npy(&d.join("a-h-2.npy"), "<f8", &[41, 3], &[0; 41 * 24])),
            "expected 60 rows, the files have 61",
        ),
        (
            with(&|d| npy(&d.join("a-h-2.npy"), "<f8", &[usize::MAX, 3], &[0; 24])),
            "a-h-2.npy: header: expected a plain array, found a shape whose product does not fit in 64 bits",
        ),
        (with(&|d| npy(&d.join("a-h-0.npy"), "<c8", &[20, 3], &[0; 480])), "expected a dtype of"),
        (meta(&|v| v["edge_type"][0] = "c:to".into()), "expected `src:relation:dst`"),
        (meta(&|v| v["edge_type"][0] = "c:to:z".into()), "unknown node type `z`"),
        (
            meta(&|v| v["edges"]["a:self:a"]["data"][0] = "/etc/passwd".into()),
            "expected a path inside the folder of the description",
        ),
        (
            meta(&|v| v["edges"]["a:self:a"]["format"]["name"] = "feather".into()),
            "format: expected csv, numpy or",
        ),
        (
            meta(&|v| v["node_data"]["a"]["h"]["format"]["name"] = "parquet".into()),
            "expected format `numpy`, got `parquet`",
        ),
        (
            meta(&|v| v["num_nodes_per_chunk"][0] = json!([u64::MAX, 1])),
            "expected a sum that fits in 64 bits",
        ),
        (
            meta(&|v| drop(v["num_nodes_per_chunk"].as_array_mut().unwrap().pop())),
            "num_nodes_per_chunk: number of types: expected 4",
        ),
        (meta(&|v| v["num_nodes_per_chunk"][3] = json!([10])), "must lie in 0..10"),
        (
            meta(&|v| drop(v["edges"].as_object_mut().unwrap().remove("a:self:a"))),
            "edges: expected an entry `a:self:a`, found none",
        ),
        (meta(&|v| v["node_type"] = 1.into()), "metadata.json: expected a JSON description"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{expected}: {found:?}");
    }
    assert!(with(&|_| ()).is_empty());
}
