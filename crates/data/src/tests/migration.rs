//! Files in the form of the data sets that the migration tables of the book name, read by the functions named there.
//!
//! Formats with a reader of their own are tested beside it.

use std::path::Path;

use burn::tensor::Device;

use crate::datasets::{DataHome, Known};
use crate::{
    AttrType, Builder, Csv, Decoder, EdgeListFormat, load_edge_list, load_knowledge_graph,
    load_matrix_market, load_node_link, read_npy,
};

fn put(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> std::path::PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// SNAP, SuiteSparse, PolBlogs, Airports, and the edges of WebKB, WikipediaNetwork and Actor.
#[test]
fn lists_and_matrices() {
    let tmp = tempfile::tempdir().unwrap();
    let device = Device::flex();
    let snap = "# Directed graph (each unordered pair of nodes is saved once): web-Google.txt \n# Nodes: 3 Edges: 2\n\
                # FromNodeId\tToNodeId\n0\t11342\n11342\t27469\r\n";
    let g = load_edge_list(put(tmp.path(), "snap.txt", snap), &EdgeListFormat::new(), &device);
    assert_eq!(g.unwrap().total_nodes(), 3);
    let suite = "%%MatrixMarket matrix coordinate pattern symmetric\n%----------\n% UF Sparse Matrix Collection, Tim Davis\n\
                 % name: Newman/karate\n%----------\n34 34 2\n2 1\n34 33\n";
    let g = load_matrix_market(put(tmp.path(), "karate.mtx", suite), &device).unwrap();
    assert_eq!((g.total_nodes(), g.total_edges()), (34, 4));
    let geom = "node_id\tnode_id\n131\t165\n143\t69\n";
    let path = put(tmp.path(), "out1_graph_edges.txt", geom);
    let g = load_edge_list(&path, &EdgeListFormat::new().with_header_lines(1), &device).unwrap();
    assert_eq!(g.total_edges(), 2);
    let e = load_edge_list(&path, &EdgeListFormat::new(), &device).unwrap_err().to_string();
    assert!(e.contains("`with_header_lines` passes over a header"), "{e}");
    let g = load_edge_list(
        put(tmp.path(), "usa-airports.edgelist", "12343 12129\n13277 11996\n"),
        &EdgeListFormat::new(),
        &device,
    );
    assert_eq!(g.unwrap().total_edges(), 2);
}

/// MovieLens (small), the CSV files of Elliptic, and a file without a header to which one was added (BitcoinOTC).
#[test]
fn tables() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    put(
        dir,
        "movies.csv",
        "movieId,title,genres\n1,Toy Story (1995),Adventure|Animation\n2,\"American President, The (1995)\",Comedy\n",
    );
    put(
        dir,
        "ratings.csv",
        "userId,movieId,rating,timestamp\n7,1,4.0,964982703\n7,2,3.5,964981247\n",
    );
    put(dir, "users.csv", "userId\n7\n");
    let movies = Decoder::new().with_attributes([AttrType::Text, AttrType::string_buckets(10)]);
    let ratings = Csv::default()
        .with_endpoints("userId", "movieId")
        .with_weight("rating")
        .with_timestamp("timestamp");
    let g = Builder::new()
        .node(
            dir.join("movies.csv"),
            "movie",
            movies.csv(Csv::new(["title", "genres"]).with_id("movieId")),
        )
        .node(dir.join("users.csv"), "user", Decoder::new().csv(Csv::default().with_id("userId")))
        .edge(
            dir.join("ratings.csv"),
            ("user", "rates", "movie"),
            Decoder::new().csv(ratings),
            true,
        )
        .build(&Device::flex())
        .unwrap();
    assert_eq!(g.edges("rates").unwrap().to_ints("timestamp").unwrap(), [964982703, 964981247]);
    put(dir, "classes.csv", "txId,class\n230425980,unknown\n5530458,2\n");
    put(dir, "edgelist.csv", "txId1,txId2\n230425980,5530458\n");
    let classes =
        Decoder::new().csv(Csv::default().with_id("txId").with_label("class")).text_labels();
    let edges = Decoder::new().csv(Csv::default().with_endpoints("txId1", "txId2"));
    let g = Builder::new()
        .node(dir.join("classes.csv"), "tx", classes)
        .edge(dir.join("edgelist.csv"), ("tx", "pays", "tx"), edges, true)
        .build(&Device::flex())
        .unwrap();
    assert_eq!(g.relation("pays").unwrap().dst(), [1]);
    put(dir, "otc.csv", "source,target,rating,time\n6,2,4,1289241912\n");
    put(dir, "ids.csv", "id\n6\n2\n");
    let otc = Csv::default()
        .with_endpoints("source", "target")
        .with_weight("rating")
        .with_timestamp("time");
    let g = Builder::new()
        .node(dir.join("ids.csv"), "user", Decoder::new().csv(Csv::default().with_id("id")))
        .edge(dir.join("otc.csv"), ("user", "trusts", "user"), Decoder::new().csv(otc), true)
        .build(&Device::flex())
        .unwrap();
    assert_eq!(g.edges("trusts").unwrap().to_ints("timestamp").unwrap(), [1289241912]);
}

/// PPI: a node-link file of NetworkX 1, and arrays.
#[test]
fn ppi() {
    let tmp = tempfile::tempdir().unwrap();
    let json = r#"{"directed": true, "graph": {}, "nodes": [{"id": 0}, {"id": 1}, {"id": 2}], "links": [{"source": 0, "target": 2}, {"source": 2, "target": 0}], "multigraph": false}"#;
    let g = load_node_link(put(tmp.path(), "train_graph.json", json), &Device::flex()).unwrap();
    assert_eq!(g.relation("_E").unwrap().src(), [0, 2]);
    let feats =
        crate::arrays::npy::npy_bytes("<f8", false, "(3, 2)", bytemuck::cast_slice(&[0f64; 6]));
    let feats = read_npy(put(tmp.path(), "train_feats.npy", feats)).unwrap();
    assert_eq!(feats.shape(), [3, 2]);
}

/// Wikidata5M's names of files; entities are known by their ids.
#[test]
fn wikidata() {
    let tmp = tempfile::tempdir().unwrap();
    for (part, text) in
        [("train", "Q29387131\tP31\tQ5\n"), ("valid", "Q5\tP31\tQ55983715\n"), ("test", "")]
    {
        put(tmp.path(), &format!("wikidata5m_transductive_{part}.txt"), text);
    }
    let k = load_knowledge_graph(tmp.path()).unwrap();
    assert_eq!((k.entities.len(), k.relations), (3, vec!["P31".to_owned()]));
}

/// Planetoid's files are read from `<home>/cora`, and missed there.
#[test]
fn planetoid_has_a_place() {
    let tmp = tempfile::tempdir().unwrap();
    let e = Known::Cora.load_from(&DataHome::at(tmp.path()).offline()).unwrap_err().to_string();
    assert!(e.contains(&tmp.path().join("cora").join("ind.cora.x").display().to_string()), "{e}");
}

/// HeterophilousGraphDataset and GitHub, and the adjacency of Flickr and Yelp.
#[cfg(feature = "npz")]
#[test]
fn arrays() {
    use crate::arrays::npy::npy_bytes;
    use crate::formats::npz::npz_bytes;
    use crate::{Npz, load_scipy_npz};
    let tmp = tempfile::tempdir().unwrap();
    let i64s = |v: &[i64], shape: &str| npy_bytes("<i8", false, shape, bytemuck::cast_slice(v));
    let minesweeper = npz_bytes(
        &[
            ("edges", i64s(&[0, 1, 1, 2], "(2, 2)")),
            ("node_labels", i64s(&[0, 1, 0], "(3,)")),
            ("node_features", npy_bytes("<f4", false, "(3, 1)", bytemuck::cast_slice(&[0f32; 3]))),
            ("train_masks", npy_bytes("|b1", false, "(1, 3)", &[1, 0, 1])),
        ],
        true,
    );
    let mut file = Npz::open(put(tmp.path(), "minesweeper.npz", minesweeper)).unwrap();
    assert_eq!(file.read("edges").unwrap().into_i64().unwrap(), [0, 1, 1, 2]);
    assert_eq!(file.read("train_masks").unwrap().shape(), [1, 3]);
    let adjacency = npz_bytes(
        &[
            ("indices", npy_bytes("<i4", false, "(2,)", bytemuck::cast_slice(&[1i32, 0]))),
            ("indptr", npy_bytes("<i4", false, "(3,)", bytemuck::cast_slice(&[0i32, 1, 2]))),
            ("format", npy_bytes("|S3", false, "()", b"csr")),
            ("shape", i64s(&[2, 2], "(2,)")),
            ("data", npy_bytes("|b1", false, "(2,)", &[1, 1])),
        ],
        true,
    );
    let g = load_scipy_npz(put(tmp.path(), "adj_full.npz", adjacency), &Device::flex()).unwrap();
    assert_eq!(g.relation("_E").unwrap().src(), [0, 1]);
}
