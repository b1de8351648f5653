//! One test per row of the migration tables of the book that names a reader: a small file in the format of that data set,
//! read as the row says.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_gnn_graph::Graph;

use crate::datasets::{DataHome, Known};
use crate::{
    AttrType, Builder, Csv, Decoder, EdgeListFormat, Encoding, GraphSet, KnowledgeGraph, TimeUnit,
    Triple, class_names, load_edge_list, load_knowledge_graph, load_matrix_market, load_node_link,
    load_tu_dataset, read_npy,
};

/// A folder of files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn dir(&self) -> &Path {
        self.0.path()
    }
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
    /// A builder with the nodes of one type, numbered in this order.
    fn nodes(&self, ntype: &str, ids: &[i64]) -> Builder {
        let rows: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let path = self.put(&format!("{ntype}.csv"), format!("id\n{rows}"));
        Builder::new().node(path, ntype, Decoder::new().csv(Csv::default().with_id("id")))
    }
    fn edge_list(&self, name: &str, text: &str, format: &EdgeListFormat) -> Graph {
        load_edge_list(self.put(name, text), format, &Device::flex()).unwrap()
    }
    /// A knowledge graph with training triples only, `empty` files for validation and test, and further files.
    fn triples(
        &self,
        train: (&str, &str),
        empty: [&str; 2],
        more: &[(&str, &str)],
    ) -> KnowledgeGraph {
        for (name, text) in [train, (empty[0], ""), (empty[1], "")].iter().chain(more) {
            self.put(name, text);
        }
        load_knowledge_graph(self.dir()).unwrap()
    }
}

fn build(builder: Builder) -> Graph {
    builder.build(&Device::flex()).unwrap()
}

fn times(g: &Graph, etype: &str) -> Vec<i64> {
    g.edges(etype).unwrap().to_ints("timestamp").unwrap()
}

#[test]
fn snap_dataset() {
    let text = "# Directed graph (each unordered pair of nodes is saved once): web-Google.txt \n# Nodes: 3 Edges: 2\n\
                # FromNodeId\tToNodeId\n0\t11342\n11342\t27469\r\n";
    assert_eq!(Files::new().edge_list("snap.txt", text, &EdgeListFormat::new()).total_nodes(), 3);
}

#[test]
fn suite_sparse_matrix_collection() {
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n%----------\n% UF Sparse Matrix Collection, Tim Davis\n\
                % name: Newman/karate\n%----------\n34 34 2\n2 1\n34 33\n";
    let files = Files::new();
    let g = load_matrix_market(files.put("karate.mtx", text), &Device::flex()).unwrap();
    assert_eq!((g.total_nodes(), g.total_edges()), (34, 4));
}

/// `WebKB`, `WikipediaNetwork`, `Actor`; DGL's `CornellDataset`, `ChameleonDataset`, ….
#[test]
fn geom_gcn_datasets() {
    let files = Files::new();
    let text = "node_id\tnode_id\n131\t165\n143\t69\n";
    let name = "out1_graph_edges.txt";
    let g = files.edge_list(name, text, &EdgeListFormat::new().with_header_lines(1));
    assert_eq!(g.total_edges(), 2);
    let e = load_edge_list(files.dir().join(name), &EdgeListFormat::new(), &Device::flex());
    let e = e.unwrap_err().to_string();
    assert!(e.contains("`with_header_lines` to skip a header"), "{e}");
}

#[test]
fn airports() {
    let files = Files::new();
    let text = "12343 12129\n13277 11996\n";
    assert_eq!(files.edge_list("usa.edgelist", text, &EdgeListFormat::new()).total_edges(), 2);
    let labels = files.put("labels-usa-airports.txt", "node label\n12343 1\n12129 3\n");
    let csv = Csv::default().with_delimiter(" ").with_id("node").with_label("label");
    let g = build(Builder::new().node(labels, "airport", Decoder::new().csv(csv)));
    assert_eq!(g.nodes("airport").unwrap().to_ints("label").unwrap(), [1, 3]);
}

#[test]
fn pol_blogs() {
    let files = Files::new();
    let text = "267\t1394\n267\t483\n";
    assert_eq!(files.edge_list("adjacency.tsv", text, &EdgeListFormat::new()).total_nodes(), 3);
}

#[test]
fn email_eu_core() {
    let files = Files::new();
    let text = "0 1\n2 3\n2 4\n";
    assert_eq!(files.edge_list("email.txt", text, &EdgeListFormat::new()).total_nodes(), 5);
    let labels = files.put("labels.txt", "0 1\n1 1\n2 21\n");
    let columns = Csv::default().with_delimiter(" ").with_columns(["id", "label"]);
    let decoder = Decoder::new().csv(columns.with_label("label"));
    let g = build(Builder::new().node(labels, "person", decoder));
    assert_eq!(g.nodes("person").unwrap().to_ints("label").unwrap(), [1, 1, 21]);
}

/// `MovieLens` (small): CSV files with headers.
#[test]
fn movie_lens_small() {
    let files = Files::new();
    let movies = "movieId,title,genres\n1,Toy Story (1995),Adventure|Animation\n2,\"American President, The (1995)\",Comedy\n";
    let movies = files.put("movies.csv", movies);
    let ratings = "userId,movieId,rating,timestamp\n7,1,4.0,964982703\n7,2,3.5,964981247\n";
    let ratings = files.put("ratings.csv", ratings);
    let attributes = Decoder::new().with_attributes([AttrType::Text, AttrType::string_buckets(10)]);
    let csv = Csv::new(["title", "genres"]).with_id("movieId");
    let rates = Csv::default()
        .with_endpoints("userId", "movieId")
        .with_weight("rating")
        .with_timestamp("timestamp");
    let g = build(files.nodes("user", &[7]).node(movies, "movie", attributes.csv(csv)).edge(
        ratings,
        ("user", "rates", "movie"),
        Decoder::new().csv(rates),
        true,
    ));
    assert_eq!(times(&g, "rates"), [964982703, 964981247]);
}

/// `u.data`: tabs, no header.
#[test]
fn movie_lens_100k() {
    let files = Files::new();
    let path = files.put("u.data", "196\t242\t3\t881250949\n196\t302\t3\t891717742\n");
    let csv = Csv::default()
        .with_delimiter("\t")
        .with_columns(["user", "movie", "rating", "time"])
        .with_endpoints("user", "movie")
        .with_weight("rating")
        .with_timestamp("time");
    let movies = files.put("movies.csv", "id\n242\n302\n");
    let g = build(
        files
            .nodes("user", &[196])
            .node(movies, "movie", Decoder::new().csv(Csv::default().with_id("id")))
            .edge(path, ("user", "rates", "movie"), Decoder::new().csv(csv), true),
    );
    assert_eq!(times(&g, "rates"), [881250949, 891717742]);
}

/// `movies.dat`: `::`, no header, Latin-1.
#[test]
fn movie_lens_1m() {
    let files = Files::new();
    let path = files.put("movies.dat", b"73::Mis\xe9rables, Les (1995)::Drama|Musical\n");
    let csv = Csv::new(["title"])
        .with_delimiter("::")
        .with_columns(["id", "title", "genres"])
        .with_encoding(Encoding::Latin1);
    let decoder = Decoder::new().with_attributes([AttrType::Text]).csv(csv);
    let g = build(Builder::new().node(path, "movie", decoder));
    let titles = g.nodes("movie").unwrap();
    let titles = titles.text("title").or_else(|_| titles.text(&crate::text_attr(0))).unwrap();
    assert_eq!(titles.get(0), "Misérables, Les (1995)");
}

/// `UserBehavior.csv`: no header, texts as behaviour.
#[test]
fn taobao() {
    let files = Files::new();
    let path = files.put("UserBehavior.csv", "1,10,25,pv,1511544070\n1,11,25,buy,1511561733\n");
    let csv = Csv::default()
        .with_columns(["user", "item", "category", "behavior", "time"])
        .with_endpoints("user", "item")
        .with_label("behavior")
        .with_timestamp("time");
    let items = files.put("items.csv", "id\n10\n11\n");
    let g = build(
        files
            .nodes("user", &[1])
            .node(items, "item", Decoder::new().csv(Csv::default().with_id("id")))
            .edge(path, ("user", "to", "item"), Decoder::new().csv(csv).text_labels(), true),
    );
    assert_eq!(class_names(g.edges("to").unwrap().text(crate::LABEL_TEXT).unwrap()), ["buy", "pv"]);
}

/// `id_author.txt` and `paper_author.txt` of AMiner: tabs, no header.
#[test]
fn aminer() {
    let files = Files::new();
    let authors = files.put("id_author.txt", "29\tJohn Doe\n31\tJane Roe\n");
    let names = Csv::new(["name"]).with_delimiter("\t").with_columns(["id", "name"]);
    let decoder = Decoder::new().with_attributes([AttrType::Text]).csv(names);
    let written = files.put("paper_author.txt", "5\t31\n5\t29\n");
    let csv = Csv::default().with_delimiter("\t").with_columns(["src_id", "dst_id"]);
    let g = build(files.nodes("paper", &[5]).node(authors, "author", decoder).edge(
        written,
        ("paper", "by", "author"),
        Decoder::new().csv(csv),
        true,
    ));
    assert_eq!(g.relation("by").unwrap().dst(), [1, 0]);
}

/// `link.dat` of HGB: tabs, no header, a type and a weight.
#[test]
fn hgb_dataset() {
    let files = Files::new();
    let path = files.put("link.dat", "0\t2\t0\t1.0\n1\t2\t0\t0.5\n");
    let csv = Csv::default()
        .with_delimiter("\t")
        .with_columns(["src_id", "dst_id", "type", "weight"])
        .with_weight("weight");
    let g = build(files.nodes("node", &[0, 1, 2]).edge(
        path,
        ("node", "to", "node"),
        Decoder::new().csv(csv),
        true,
    ));
    assert_eq!(g.relation("to").unwrap().src(), [0, 1]);
}

/// `soc-sign-bitcoinotc.csv`: no header, seconds with a fraction.
#[test]
fn bitcoin_otc() {
    let files = Files::new();
    let path = files.put("soc-sign-bitcoinotc.csv", "6,2,4,1289241911.72836\n");
    let csv = Csv::default()
        .with_columns(["source", "target", "rating", "time"])
        .with_endpoints("source", "target")
        .with_weight("rating")
        .with_timestamp("time")
        .with_time_unit(TimeUnit::Microseconds);
    let g = build(files.nodes("user", &[6, 2]).edge(
        path,
        ("user", "trusts", "user"),
        Decoder::new().csv(csv),
        true,
    ));
    assert_eq!(times(&g, "trusts"), [1289241911728360]);
}

/// `train.txt` of ICEWS18 and GDELT: subject, relation, object and time by number.
#[test]
fn icews18_and_gdelt() {
    let files = Files::new();
    let path = files.put("train.txt", "0\t7\t1\t0\t0\n1\t8\t0\t24\t0\n");
    let csv = Csv::new(["relation"])
        .with_delimiter("\t")
        .with_columns(["src_id", "relation", "dst_id", "time", "zero"])
        .with_timestamp("time");
    let decoder = Decoder::new().with_attributes([AttrType::Int]).csv(csv);
    let g = build(files.nodes("entity", &[0, 1]).edge(
        path,
        ("entity", "event", "entity"),
        decoder,
        true,
    ));
    assert_eq!(
        (times(&g, "event"), g.relation("event").unwrap().dst()),
        (vec![0, 24], &[1, 0][..])
    );
}

/// `elliptic_txs_features.csv` has no header, the other files have one.
#[test]
fn elliptic_bitcoin_dataset() {
    let files = Files::new();
    let classes = files.put("classes.csv", "txId,class\n230425980,unknown\n5530458,2\n");
    let edges = files.put("edgelist.csv", "txId1,txId2\n230425980,5530458\n");
    let decoder = Decoder::new().csv(Csv::default().with_id("txId").with_label("class"));
    let ends = Decoder::new().csv(Csv::default().with_endpoints("txId1", "txId2"));
    let g = build(Builder::new().node(classes, "tx", decoder.text_labels()).edge(
        edges,
        ("tx", "pays", "tx"),
        ends,
        true,
    ));
    assert_eq!(g.relation("pays").unwrap().dst(), [1]);
    let features = files.put("features.csv", "230425980,1,-0.171\n5530458,1,0.163\n");
    let csv = Csv::new(["x"]).with_columns(["id", "step", "x"]);
    let decoder = Decoder::new().with_attributes([AttrType::Float]).csv(csv);
    let g = build(Builder::new().node(features, "tx", decoder));
    assert_eq!(g.num_nodes("tx").unwrap(), 2);
}

/// A node-link file of NetworkX 1, and arrays.
#[test]
fn ppi() {
    let files = Files::new();
    let json = r#"{"directed": true, "graph": {}, "nodes": [{"id": 0}, {"id": 1}, {"id": 2}], "links": [{"source": 0, "target": 2}, {"source": 2, "target": 0}], "multigraph": false}"#;
    let g = load_node_link(files.put("train_graph.json", json), &Device::flex()).unwrap();
    assert_eq!(g.relation("_E").unwrap().src(), [0, 2]);
    let zeros = bytemuck::cast_slice(&[0f64; 6]);
    let feats = crate::arrays::npy::npy_bytes("<f8", false, "(3, 2)", zeros);
    let feats = read_npy(files.put("train_feats.npy", feats)).unwrap();
    assert_eq!(feats.shape(), [3, 2]);
}

#[test]
fn fb15k_237() {
    let train = "/m/027rn\t/location/country/form_of_government\t/m/06cx9\n";
    let k = Files::new().triples(("train.txt", train), ["valid.txt", "test.txt"], &[]);
    assert_eq!(k.entities, ["/m/027rn", "/m/06cx9"]);
}

/// DGL's files have lists of names, too.
#[test]
fn dgl_fb15k() {
    let train = "/m/027rn\t/location/x\t/m/06cx9\n";
    let lists = [
        ("entities.dict", "0\t/m/06cx9\n1\t/m/027rn\n"),
        ("relations.dict", "0\t/people/y\n1\t/location/x\n"),
    ];
    let k = Files::new().triples(("train.txt", train), ["valid.txt", "test.txt"], &lists);
    assert_eq!(k.train, [Triple { head: 1, relation: 1, tail: 0 }]);
}

#[test]
fn word_net_18() {
    let train = "03964744\t_hyponym\t04371774\n";
    let parts = ["valid", "test"].map(|p| format!("wordnet-mlj12-{p}.txt"));
    let train = ("wordnet-mlj12-train.txt", train);
    let k = Files::new().triples(train, [&parts[0], &parts[1]], &[]);
    assert_eq!((k.relations, k.train.len()), (vec!["_hyponym".to_owned()], 1));
}

#[test]
fn word_net_18_rr() {
    let train = "00260881\t_hypernym\t00260622\n01332730\t_derivationally_related_form\t03122748\n";
    let k = Files::new().triples(("train.txt", train), ["valid.txt", "test.txt"], &[]);
    assert_eq!((k.entities.len(), k.relations.len()), (4, 2));
}

/// Entities are named by their ids.
#[test]
fn wikidata_5m() {
    let parts = ["valid", "test"].map(|p| format!("wikidata5m_transductive_{p}.txt"));
    let train = ("wikidata5m_transductive_train.txt", "Q29387131\tP31\tQ5\n");
    let k = Files::new().triples(train, [&parts[0], &parts[1]], &[]);
    assert_eq!((k.entities.len(), k.relations), (2, vec!["P31".to_owned()]));
}

#[test]
fn tu_dataset() {
    let files = Files::new();
    files.put("MUTAG_A.txt", "1, 2\n2, 1\n");
    files.put("MUTAG_graph_indicator.txt", "1\n1\n");
    files.put("MUTAG_graph_labels.txt", "-1\n");
    files.put("MUTAG_node_labels.txt", "0\n3\n");
    let GraphSet { graphs, data, .. } = load_tu_dataset(files.dir(), &Device::flex()).unwrap();
    assert_eq!(graphs[0].nodes(..).unwrap().to_ints("node_labels").unwrap(), [0, 3]);
    assert_eq!(data.to_ints("y").unwrap(), [0]);
}

/// `read_planetoid_data`: files are expected in `<home>/cora`.
#[test]
fn planetoid_folder() {
    let files = Files::new();
    let home = DataHome::at(files.dir()).offline();
    let e = Known::Cora.load_from(&home).unwrap_err().to_string();
    let missing = files.dir().join("cora").join("ind.cora.x").display().to_string();
    assert!(e.contains(&missing), "{e}");
}

#[cfg(feature = "npz")]
mod archives {
    use super::*;
    use crate::arrays::npy::npy_bytes;
    use crate::formats::npz::npz_bytes;
    use crate::{Features, Npz, load_gnn_benchmark, load_scipy_npz, read_scipy_npz};

    fn i64s(v: &[i64], shape: &str) -> Vec<u8> {
        npy_bytes("<i8", false, shape, bytemuck::cast_slice(v))
    }
    fn i32s(v: &[i32]) -> Vec<u8> {
        npy_bytes("<i4", false, &format!("({},)", v.len()), bytemuck::cast_slice(v))
    }
    fn f32s(v: &[f32], shape: &str) -> Vec<u8> {
        npy_bytes("<f4", false, shape, bytemuck::cast_slice(v))
    }
    /// `scipy.sparse.save_npz` of a CSR matrix.
    fn csr(indptr: &[i32], indices: &[i32], shape: [i64; 2], data: Vec<u8>) -> Vec<u8> {
        let arrays = [
            ("indices", i32s(indices)),
            ("indptr", i32s(indptr)),
            ("format", npy_bytes("|S3", false, "()", b"csr")),
            ("shape", i64s(&shape, "(2,)")),
            ("data", data),
        ];
        npz_bytes(&arrays, true)
    }

    /// `HeterophilousGraphDataset`; DGL's `MinesweeperDataset`, ….
    #[test]
    fn heterophilous_graph_dataset() {
        let files = Files::new();
        let arrays = [
            ("edges", i64s(&[0, 1, 1, 2], "(2, 2)")),
            ("node_labels", i64s(&[0, 1, 0], "(3,)")),
            ("node_features", f32s(&[0.0; 3], "(3, 1)")),
            ("train_masks", npy_bytes("|b1", false, "(1, 3)", &[1, 0, 1])),
        ];
        let path = files.put("minesweeper.npz", npz_bytes(&arrays, true));
        let mut file = Npz::open(path).unwrap();
        assert_eq!(file.read("edges").unwrap().into_i64().unwrap(), [0, 1, 1, 2]);
        assert_eq!(file.read("train_masks").unwrap().shape(), [1, 3]);
    }

    /// `Reddit2`, `Flickr`, `Yelp`, `AmazonProducts`: a boolean adjacency and float64 features.
    #[test]
    fn flickr_and_yelp() {
        let files = Files::new();
        let ones = npy_bytes("|b1", false, "(2,)", &[1, 1]);
        let path = files.put("adj_full.npz", csr(&[0, 1, 2], &[1, 0], [2, 2], ones));
        let g = load_scipy_npz(path, &Device::flex()).unwrap();
        assert_eq!(g.relation("_E").unwrap().src(), [0, 1]);
        let feats = npy_bytes("<f8", false, "(2, 1)", bytemuck::cast_slice(&[0.5f64, 1.0]));
        let feats = read_npy(files.put("feats.npy", feats)).unwrap();
        assert_eq!(feats.into_floats().unwrap(), [0.5, 1.0]);
    }

    /// `CitationFull`, `CoraFull`, `Coauthor`, `Amazon`; DGL adds reverse edges and merges parallel ones.
    #[test]
    fn gnn_benchmark_datasets() {
        let files = Files::new();
        let arrays = [
            ("adj_data", f32s(&[1.0, 1.0, 1.0], "(3,)")),
            ("adj_indices", i32s(&[1, 0, 2])),
            ("adj_indptr", i32s(&[0, 1, 3, 3])),
            ("adj_shape", i64s(&[3, 3], "(2,)")),
            ("attr_data", f32s(&[1.0], "(1,)")),
            ("attr_indices", i32s(&[4])),
            ("attr_indptr", i32s(&[0, 0, 1, 1])),
            ("attr_shape", i64s(&[3, 5], "(2,)")),
            ("labels", i64s(&[0, 1, 1], "(3,)")),
        ];
        let path = files.put("amazon_electronics_computers.npz", npz_bytes(&arrays, true));
        let d = load_gnn_benchmark(path).unwrap();
        assert_eq!((d.num_classes, d.features["_N"].cols(), d.graph.total_edges()), (2, 5, 3));
        let both = d.graph.add_reverse_edges(0).unwrap();
        assert_eq!(both.to_simple(burn_gnn_graph::Combine::First).unwrap().graph.total_edges(), 4);
    }

    /// `IMDB`, `DBLP`, `LastFM`: sparse matrices between types, and labels.
    #[test]
    fn imdb_dblp_and_last_fm() {
        let files = Files::new();
        let data = npy_bytes("<f8", false, "(1,)", bytemuck::cast_slice(&[1f64]));
        let path = files.put("adjM.npz", csr(&[0, 1, 1], &[2], [2, 3], data));
        let Features::Sparse { rows, cols, row, col, .. } = read_scipy_npz(path).unwrap() else {
            panic!("expected sparse features")
        };
        assert_eq!((rows, cols, row, col), (2, 3, vec![0], vec![2]));
        let labels = read_npy(files.put("labels.npy", i64s(&[2, 0], "(2,)"))).unwrap();
        assert_eq!(labels.into_i64().unwrap(), [2, 0]);
    }
}
