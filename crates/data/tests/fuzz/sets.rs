//! Small files of published data sets and of other systems.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::put;

/// A `.npy` file.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    header += &" ".repeat(118 - header.len() - 1);
    [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), b"\n", data].concat()
}

fn i64s(v: &[i64]) -> Vec<u8> {
    npy("<i8", &format!("({},)", v.len()), bytemuck::cast_slice(v))
}

fn i32s(v: &[i32]) -> Vec<u8> {
    npy("<i4", &format!("({},)", v.len()), bytemuck::cast_slice(v))
}

pub(crate) fn npz(arrays: &[(&str, Vec<u8>)], compressed: bool) -> Vec<u8> {
    let method =
        if compressed { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, bytes) in arrays {
        out.start_file(
            format!("{name}.npy"),
            zip::write::SimpleFileOptions::default().compression_method(method),
        )
        .unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// A CSR matrix as SciPy writes it.
pub(crate) fn matrix(compressed: bool) -> Vec<u8> {
    let data = npy("<f8", "(3,)", bytemuck::cast_slice(&[5f64, 6., 7.]));
    let format = npy("|S3", "()", b"csr");
    npz(
        &[
            ("format", format),
            ("shape", i64s(&[2, 3])),
            ("data", data),
            ("indptr", i32s(&[0, 1, 3])),
            ("indices", i32s(&[1, 0, 2])),
        ],
        compressed,
    )
}

/// A database of two tables and a task.
pub(crate) fn database(dir: &Path) -> Vec<PathBuf> {
    let json = r#"{"database": "d", "val_timestamp": "2000-01-02", "test_timestamp": "2000-01-03T00:00:00Z",
        "tables": {"p": {"primary_key": "id", "columns": {"l": {"kind": "list"}, "v": {"kind": "vector"}}},
        "r": {"rows": 3, "time_column": "at", "foreign_keys": {"p": "p"}, "columns": {"c": {"kind": "category"}}}},
        "tasks": {"t": {"entity_table": "p", "entity_column": "id", "time_column": "at", "target_column": "y",
        "type": "binary classification", "horizon_days": 3}}}"#;
    let labels = "at,id,y\n2000-01-01,7,1\n2000-01-02,9,0\n";
    vec![
        put(dir, "schema.json", json),
        put(dir, "tables/p.csv", "id,name,l,v\n7,\"a\nb\",\"[1, 2]\",\"[0.5, 1]\"\n9,,[],\n"),
        put(
            dir,
            "tables/r.csv",
            "p,at,c,x,b\n9,2000-01-01,3,1.5,true\n,2000-01-02 10:00:00.5,4,,\n8.0,,3,2,false\n",
        ),
        put(dir, "tasks/t/train.csv", labels),
        put(dir, "tasks/t/val.csv", labels),
        put(dir, "tasks/t/test.csv", "at,id\n2000-01-01,7\n"),
    ]
}

pub(crate) fn dgl_csv(dir: &Path) -> Vec<PathBuf> {
    let meta = "version: 1.0.0\ndataset_name: many\nnode_data:\n- {file_name: u.csv, ntype: user}\nedge_data:\n\
                - file_name: e.csv\n  etype: [user, knows, user]\ngraph_data: {file_name: g.csv}\n";
    vec![
        put(dir, "meta.yaml", meta),
        put(
            dir,
            "u.csv",
            "node_id,graph_id,mask,feat\n5,0,True,\"0.5,-1\"\n1,0,False,\"[2, 3]\"\n5,7,True,\"1e3,4\"\n",
        ),
        put(dir, "e.csv", "src_id,dst_id,graph_id,w\n5,1,0,2\n1,1,0,2.5\n5,5,7,-3\n"),
        put(dir, "g.csv", "graph_id,label\n7,1\n0,0\n"),
    ]
}

pub(crate) fn chunked(dir: &Path) -> Vec<PathBuf> {
    let json = r#"{"graph_name": "g", "node_type": ["p", "a"], "num_nodes_per_chunk": [[1, 2], [2, 0]],
        "edge_type": ["a:w:p", "p:c:p"], "num_edges_per_chunk": [[1, 1], [2]],
        "edges": {"a:w:p": {"format": {"name": "csv", "delimiter": ","}, "data": ["w0.csv", "w1.csv"]},
                  "p:c:p": {"format": {"name": "numpy"}, "data": ["c.npy"]}},
        "node_data": {"p": {"x": {"format": {"name": "numpy"}, "data": ["x0.npy", "x1.npy"]}}},
        "edge_data": {"p:c:p": {"y": {"format": {"name": "csv", "delimiter": "|"}, "data": ["y.csv"]}}}}"#;
    vec![
        put(dir, "metadata.json", json),
        put(dir, "w0.csv", "0,2\n"),
        put(dir, "w1.csv", "1,0\n"),
        put(dir, "c.npy", npy("<i8", "(2, 2)", bytemuck::cast_slice(&[0i64, 1, 2, 0]))),
        put(dir, "x0.npy", npy("<f4", "(1, 2)", bytemuck::cast_slice(&[0f32, 1.]))),
        put(dir, "x1.npy", npy("<f4", "(2, 2)", bytemuck::cast_slice(&[2f32, 3., 4., 5.]))),
        put(dir, "y.csv", "1|2\n3|4\n"),
    ]
}

pub(crate) fn ogb(dir: &Path) -> Vec<PathBuf> {
    vec![
        put(dir, "raw/num-node-list.csv", "4\n"),
        put(dir, "raw/edge.csv", "0,1\n3,2\n0,1\n"),
        put(dir, "raw/node-feat.csv", "0.5,-1\n1e-3,2\n0,0\n4,5\n"),
        put(dir, "raw/node-label.csv", "2\n0\nnan\n1\n"),
        put(dir, "split/time/train.csv", "0\n"),
        put(dir, "split/time/valid.csv", "3\n"),
        put(dir, "split/time/test.csv", "1\n"),
    ]
}

pub(crate) fn ogb_typed(dir: &Path) -> Vec<PathBuf> {
    vec![
        put(dir, "raw/num-node-dict.csv", "author,paper\n2,3\n"),
        put(dir, "raw/triplet-type-list.csv", "author,writes,paper\npaper,cites,paper\n"),
        put(dir, "raw/relations/author___writes___paper/edge.csv", "0,2\n1,0\n"),
        put(dir, "raw/relations/paper___cites___paper/edge.csv", "2,1\n"),
        put(dir, "raw/node-feat/paper/node-feat.csv", "1\n2\n3\n"),
        put(dir, "raw/node-label/paper/node-label.csv", "1\n0\n1\n"),
        put(dir, "split/time/paper/train.csv", "0\n"),
        put(dir, "split/time/paper/valid.csv", "1\n"),
        put(dir, "split/time/paper/test.csv", "2\n"),
    ]
}

/// The layout of ogbn-proteins.
pub(crate) fn ogb_graph(dir: &Path) -> Vec<PathBuf> {
    vec![
        put(dir, "raw/num-node-list.csv", "3\n"),
        put(dir, "raw/edge.csv", "0,1\n2,0\n"),
        put(dir, "raw/node-label.csv", "0,1,nan\n1,0,0\n1,1,1\n"),
        put(dir, "raw/edge-feat.csv", "0.5,1\n0,2e-1\n"),
        put(dir, "raw/species.csv", "3702\n9606\n3702\n"),
        put(dir, "split/species/train.csv", "0\n"),
        put(dir, "split/species/valid.csv", "2\n"),
        put(dir, "split/species/test.csv", "1\n"),
    ]
}

/// Triples as FB15k-237 has them, with numbers for the names.
pub(crate) fn triple_names(dir: &Path) -> Vec<PathBuf> {
    vec![
        put(dir, "train.txt", "/m/1\tborn in\t/m/2\n/m/2\tpart of\t/m/3\n"),
        put(dir, "valid.txt", "/m/3\tpart of\t/m/1\n"),
        put(dir, "test.txt", ""),
        put(dir, "relations.dict", "0\tpart of\n1\tborn in\n"),
    ]
}

/// OpenKE's files.
pub(crate) fn triple_numbers(dir: &Path) -> Vec<PathBuf> {
    vec![
        put(dir, "entity2id.txt", "3\n/m/1\t0\nNew York\t2\n/m/3\t1\n"),
        put(dir, "relation2id.txt", "2\nr\t1\ns\t0\n"),
        put(dir, "train2id.txt", "2\n0 2 1\n1 0 0\n"),
        put(dir, "valid2id.txt", "1\n2 1 1\n"),
        put(dir, "test2id.txt", "0\n"),
    ]
}

pub(crate) fn tu(dir: &Path) -> Vec<PathBuf> {
    vec![
        put(dir, "TOY_A.txt", "2, 1\n1, 2\n3, 2\n2, 3\n5, 4\n4, 5\n"),
        put(dir, "TOY_graph_indicator.txt", "1\n1\n1\n2\n2\n"),
        put(dir, "TOY_graph_labels.txt", "1\n-1\n"),
        put(dir, "TOY_node_labels.txt", "0\n3\n0\n7\n0\n"),
        put(dir, "TOY_node_attributes.txt", "0.5, -1\n1, 2\n3, 4\n5, 6e-1\n7, 8\n"),
        put(dir, "TOY_edge_labels.txt", "0\n0\n2\n2\n1\n1\n"),
    ]
}

/// A graph of gnn-benchmark.
pub(crate) fn gnn_benchmark() -> Vec<u8> {
    let floats = |v: &[f32]| npy("<f4", &format!("({},)", v.len()), bytemuck::cast_slice(v));
    npz(
        &[
            ("adj_data", floats(&[1., 1., 1.])),
            ("adj_indices", i32s(&[1, 2, 0])),
            ("adj_indptr", i32s(&[0, 2, 2, 3])),
            ("adj_shape", i64s(&[3, 3])),
            ("attr_data", floats(&[1., 2.])),
            ("attr_indices", i32s(&[1, 0])),
            ("attr_indptr", i32s(&[0, 1, 1, 2])),
            ("attr_shape", i64s(&[3, 2])),
            ("labels", i64s(&[0, 2, 1])),
        ],
        true,
    )
}

pub(crate) const NODE_LINK: &str = r#"{"directed": false, "nodes": [{"id": 0, "club": "Hi", "x": [1, 2.5]}, {"id": 33, "club": "", "x": [3, 4]}],
    "links": [{"source": 0, "target": 33, "weight": 4, "kept": true}, {"source": 33, "target": 33, "weight": 0.5, "kept": false}]}"#;

pub(crate) const GRAPHML: &str = r#"<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d1" for="edge" attr.name="weight" attr.type="double" /> <!-- a comment -->
  <key id="d0" for="node" attr.name="name" attr.type="string"><default>x</default></key>
  <graph edgedefault="undirected">
    <node id="0"> <data key="d0">Ann &amp; &#233;</data> </node> <node id="7"/>
    <edge source="0" target="7" directed="true"> <data key="d1"><![CDATA[4]]></data> </edge>
    <edge source="7" target="7"> <data key="d1">0.5</data> </edge>
  </graph>
</graphml>
"#;

/// Pickles as Python 2 writes them.
pub(crate) fn planetoid(dir: &Path) -> Vec<PathBuf> {
    let array = |shape: &[u8], dtype: &str, data: &[u8]| {
        let mut out =
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
                .to_vec();
        shape.iter().for_each(|&n| out.extend([b'K', n]));
        out.push(0x84 + shape.len() as u8);
        out.extend(b"cnumpy\ndtype\nU\x02");
        out.extend(dtype.as_bytes());
        out.extend(b"K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U");
        out.push(data.len() as u8);
        out.extend(data);
        out.extend(b"tb");
        out
    };
    let matrix = |rows: u8, indptr: &[i32], indices: &[i32]| {
        let ones = vec![1f32; indices.len()];
        let mut out =
            b"\x80\x02cscipy.sparse.csr\ncsr_matrix\n)\x81q\x01}q\x02(U\x06_shapeK".to_vec();
        out.extend([rows, b'K', 2, 0x86]);
        let lengths = [indptr.len() as u8, indices.len() as u8];
        for (name, length, dtype, data) in [
            ("indptr", lengths[0], "i4", bytemuck::cast_slice(indptr)),
            ("indices", lengths[1], "i4", bytemuck::cast_slice(indices)),
            ("data", lengths[1], "f4", bytemuck::cast_slice(&ones)),
        ] {
            out.extend([b'U', name.len() as u8]);
            out.extend(name.as_bytes());
            out.extend(array(&[length], dtype, data));
        }
        out.extend(b"ub.");
        out
    };
    let labels = |rows: u8, hot: &[i32]| {
        [b"\x80\x02".to_vec(), array(&[rows, 2], "i4", bytemuck::cast_slice(hot)), b".".to_vec()]
            .concat()
    };
    let graph = b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x00]q\x01(K\x01K\x03eK\x03]q\x02K\x00au.";
    vec![
        put(dir, "ind.cora.x", matrix(1, &[0, 1], &[0])),
        put(dir, "ind.cora.allx", matrix(3, &[0, 1, 2, 4], &[0, 1, 0, 1])),
        put(dir, "ind.cora.tx", matrix(1, &[0, 1], &[1])),
        put(dir, "ind.cora.y", labels(1, &[1, 0])),
        put(dir, "ind.cora.ally", labels(3, &[1, 0, 0, 1, 0, 1])),
        put(dir, "ind.cora.ty", labels(1, &[0, 1])),
        put(dir, "ind.cora.graph", graph),
        put(dir, "ind.cora.test.index", "3\n"),
    ]
}

pub(crate) fn entities(dir: &Path) -> Vec<PathBuf> {
    let nt =
        "<http://p/1> <http://o#name> \"Ann\" .\n<http://p/2> <http://o#knows> <http://p/1> .\n";
    // Plain text under the name of a gzip file: damage to a compressed one seldom leaves anything to parse.
    vec![
        put(dir, "aifb_stripped.nt.gz", nt),
        put(
            dir,
            "completeDataset.tsv",
            "person\tid\tlabel_affiliation\nhttp://p/1\t0\thttp://g/b\nhttp://p/2\t1\thttp://g/a\n",
        ),
        put(dir, "trainingSet.tsv", "person\tid\tlabel_affiliation\nhttp://p/1\t0\thttp://g/b\n"),
        put(dir, "testSet.tsv", "person\tid\tlabel_affiliation\nhttp://p/2\t1\thttp://g/a\n"),
    ]
}

pub(crate) fn reddit(dir: &Path) -> Vec<PathBuf> {
    let feature = npy("<f4", "(3, 2)", bytemuck::cast_slice(&[1f32, 2., 3., 4., 5., 6.]));
    let data = npz(
        &[("feature", feature), ("label", i64s(&[2, 0, 1])), ("node_types", i64s(&[3, 1, 2]))],
        false,
    );
    let format = npy("|S3", "()", b"coo");
    let ones = i32s(&[1, 1]);
    let edges = [
        ("row", i32s(&[0, 1])),
        ("col", i32s(&[1, 0])),
        ("data", ones),
        ("shape", i64s(&[3, 3])),
        ("format", format),
    ];
    vec![put(dir, "reddit_data.npz", data), put(dir, "reddit_graph.npz", npz(&edges, false))]
}
