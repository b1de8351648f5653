//! Partitionings that DGL wrote: the same assignment gives the same parts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_dist::{
    Partition, PartitionConfig, PartitionMethod, load_partition, load_partition_book,
    partition_graph, verify_partition,
};
use burn_gnn_graph::{Graph, HomoId, TypedId};
use burn_gnn_testutil::golden;

use crate::partition::{check, methods};

/// DGL 2.1.0 on the same assignment: the same ranges, nodes, edges and flags.
#[test]
fn same_parts_as_dgl() {
    let Some(folder) = golden() else { return };
    for name in ["het2", "homo2", "het3"] {
        same_as_dgl(&folder.join("partition").join(name), name);
    }
}

fn npy(path: &Path) -> Vec<i64> {
    let bytes = fs::read(path).unwrap();
    let header = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let text = String::from_utf8_lossy(&bytes[10..10 + header]).into_owned();
    let body = &bytes[10 + header..];
    if text.contains("<f4") {
        return body
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()) as i64)
            .collect();
    }
    if text.contains("<i4") {
        return body
            .chunks_exact(4)
            .map(|b| i64::from(i32::from_le_bytes(b.try_into().unwrap())))
            .collect();
    }
    if text.contains("|u1") {
        return body.iter().map(|&b| i64::from(b)).collect();
    }
    assert!(text.contains("<i8"), "{text}");
    body.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
}

fn same_as_dgl(dir: &Path, name: &str) {
    let meta: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join(format!("{name}.json"))).unwrap()).unwrap();
    let keys = |k: &str| meta[k].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (ntypes, etypes) = (keys("ntypes"), keys("etypes"));
    let number = |k: &str| meta[k].as_u64().unwrap() as usize;
    let parts = number("num_parts");
    let ranges = |map: &str, t: &str| {
        meta[map][t]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| (r[0].as_i64().unwrap(), r[1].as_i64().unwrap()))
            .collect::<Vec<_>>()
    };
    // DGL's global id to (type, original id): inside a part, DGL does not keep the original order.
    let originals = |map: &str, types: &[String], file: &str| {
        let mut out = BTreeMap::new();
        for (t, ty) in types.iter().enumerate() {
            let old = npy(&dir.join(format!("{file}.{}.npy", ty.replace(':', "."))));
            let global = ranges(map, ty).into_iter().flat_map(|(b, e)| b..e);
            out.extend(global.zip(old).map(|(j, o)| (j, (t, o as u64))));
        }
        out
    };
    let nodes = originals("node_map", &ntypes, "orig_nids");
    let edges = originals("edge_map", &etypes, "orig_eids");

    let mut b = Graph::builder();
    let mut owner = vec![];
    for (t, ty) in ntypes.iter().enumerate() {
        let count = nodes.values().filter(|v| v.0 == t).count();
        b = b.nodes(ty, count);
        let mut of = vec![0; count];
        for (p, (begin, end)) in ranges("node_map", ty).into_iter().enumerate() {
            (begin..end).for_each(|j| of[nodes[&j].1 as usize] = p as u32);
        }
        owner.push(of);
    }
    for ty in &etypes {
        let endpoints = npy(&dir.join(format!("input.edges.{}.npy", ty.replace(':', "."))));
        let (src, dst) = endpoints.split_at(endpoints.len() / 2);
        let [s, r, d] = ty.split(':').collect::<Vec<_>>()[..] else { panic!("{ty}") };
        b = b.edges_i64((s, r, d), src.to_vec(), dst.to_vec());
    }
    let mut g = b.build().unwrap();
    // As in DGL's input: row `i` of every type is `(i, i)`.
    for (ty, n) in ntypes.iter().zip(g.node_counts().to_vec()) {
        let rows: Vec<f32> = (0..n).flat_map(|i| [i as f32; 2]).collect();
        let rows = Tensor::<2>::from_data(TensorData::new(rows, [n, 2]), &Device::flex());
        g.nodes_mut(ty).unwrap().insert("feat", rows).unwrap();
    }
    let config = PartitionConfig::new(name, parts)
        .with_method(PartitionMethod::custom(ntypes.iter().cloned().zip(owner)))
        .with_num_hops(number("halo_hops"));
    let ours = partition_graph(&g, &config).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let json = ours.write(temp.path()).unwrap();
    let holds = |json: &Path| {
        let report = verify_partition(json, Some(&g)).unwrap();
        assert!(report.is_ok(), "{name}: {report}");
    };
    holds(&json);
    // For any method.
    for method in methods() {
        for (n, reshuffle) in [(parts, true), (5, false)] {
            let other = tempfile::tempdir().unwrap();
            let config = PartitionConfig::new(name, n)
                .with_method(method.clone())
                .with_reshuffle(reshuffle)
                .with_num_hops(number("halo_hops"));
            let cut = partition_graph(&g, &config).unwrap();
            check(&g, &cut);
            holds(&cut.write(other.path()).unwrap());
        }
    }
    let written: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    for key in [
        "graph_name",
        "num_nodes",
        "num_edges",
        "num_parts",
        "halo_hops",
        "node_map",
        "edge_map",
        "ntypes",
        "etypes",
    ] {
        assert_eq!(written[key], meta[key], "{name}: {key}");
    }
    for p in 0..parts {
        let (ours, dir) = (ours.part(p).unwrap(), dir.join(format!("part{p}")));
        let theirs = |ids: &str,
                      flags: &str,
                      map: &BTreeMap<i64, (usize, u64)>|
         -> BTreeMap<(usize, u64), bool> {
            npy(&dir.join(ids))
                .iter()
                .zip(npy(&dir.join(flags)))
                .map(|(j, f)| (map[j], f == 1))
                .collect()
        };
        let (n, e) = sets(&ours);
        assert_eq!(n, theirs("nid.npy", "inner_node.npy", &nodes), "{name}, nodes of part {p}");
        assert_eq!(e, theirs("eid.npy", "inner_edge.npy", &edges), "{name}, edges of part {p}");
        // Our book takes DGL's global ids apart as DGL does, and puts them together again.
        let book = load_partition_book(&json).unwrap();
        let global = |file: &str| {
            npy(&dir.join(file)).into_iter().map(|j| HomoId(j as u64)).collect::<Vec<_>>()
        };
        let apart = |ty: &str, id: &str| {
            npy(&dir.join(ty))
                .into_iter()
                .zip(npy(&dir.join(id)))
                .map(|(ty, id)| TypedId { ty: ty as usize, id: id as u64 })
                .collect::<Vec<_>>()
        };
        let (nid, eid) = (global("nid.npy"), global("eid.npy"));
        let (typed, typed_edges) = (
            apart("node_type.npy", "node_id_in_type.npy"),
            apart("edge_type.npy", "edge_id_in_type.npy"),
        );
        assert_eq!(book.map_to_per_ntype(&nid).unwrap(), typed);
        assert_eq!(book.map_to_per_etype(&eid).unwrap(), typed_edges);
        for (&global, (&id, owner)) in nid.iter().zip(typed.iter().zip(npy(&dir.join("owner.npy"))))
        {
            assert_eq!(book.map_to_homo_nid(id.ty, id.id).unwrap(), global);
            assert_eq!(book.nid2partid(id.ty, id.id).unwrap(), owner as usize);
        }
        for (&global, &id) in eid.iter().zip(&typed_edges) {
            assert_eq!(book.map_to_homo_eid(id.ty, id.id).unwrap(), global);
        }
        // Features: the rows of inner nodes, as many as DGL stores.
        let loaded = load_partition(&json, p).unwrap();
        for (t, ty) in ntypes.iter().enumerate() {
            let mut theirs = npy(&dir.join(format!("node_feat.{ty}.feat.npy")));
            theirs.sort_unstable();
            let rows: Vec<i64> =
                loaded.node_feature(t, "feat").unwrap().iter::<f32>().map(|x| x as i64).collect();
            assert_eq!(rows, theirs, "{name}, features of `{ty}` in part {p}");
        }
        println!("{name} part {p}: {} nodes, {} edges as in DGL", n.len(), e.len());
    }
}

/// (type, original id) → inner, of nodes and of edges.
#[allow(clippy::type_complexity)]
fn sets(p: &Partition) -> (BTreeMap<(usize, u64), bool>, BTreeMap<(usize, u64), bool>) {
    let node = |(i, (&j, &old)): (usize, (&u64, &u64))| {
        ((p.book().global_to_node(HomoId(j)).unwrap().ty, old), i < p.num_inner_nodes())
    };
    let edge = |(i, (&j, &old)): (usize, (&u64, &u64))| {
        ((p.book().global_to_edge(HomoId(j)).unwrap().ty, old), i < p.num_inner_edges())
    };
    let nodes = p.global_nids().iter().zip(p.original_nids()).enumerate().map(node).collect();
    (nodes, p.global_eids().iter().zip(p.original_eids()).enumerate().map(edge).collect())
}
