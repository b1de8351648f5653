//! Planetoid's files, as Python 2 pickled them, written here.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use proptest::prelude::*;

use super::{DataHome, Known};
use crate::{Dataset, load_dataset};

/// Writes opcodes as `pickle.dump(…, protocol=2)` of Python 2 does.
#[derive(Default)]
pub(super) struct Pickler {
    out: Vec<u8>,
    memo: u32,
}

impl Pickler {
    pub(super) fn new() -> Self {
        Self { out: vec![0x80, 2], memo: 0 }
    }
    fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend(bytes);
        self
    }
    fn put(&mut self) -> &mut Self {
        let key = self.memo;
        self.memo += 1;
        if key < 256 {
            self.raw(&[b'q', key as u8])
        } else {
            self.raw(b"r").raw(&key.to_le_bytes())
        }
    }
    fn global(&mut self, module: &str, name: &str) -> &mut Self {
        self.raw(format!("c{module}\n{name}\n").as_bytes()).put()
    }
    fn int(&mut self, v: u32) -> &mut Self {
        match v {
            0..256 => self.raw(&[b'K', v as u8]),
            256..65_536 => self.raw(b"M").raw(&(v as u16).to_le_bytes()),
            _ => self.raw(b"J").raw(&v.to_le_bytes()),
        }
    }
    fn text(&mut self, t: &[u8]) -> &mut Self {
        let op: Vec<u8> = if t.len() < 256 {
            vec![b'U', t.len() as u8]
        } else {
            [b"T", &(t.len() as u32).to_le_bytes()[..]].concat()
        };
        self.raw(&op).raw(t).put()
    }
    /// `_reconstruct(ndarray, (0,), 'b')`, then its state.
    fn array(&mut self, shape: &[u32], dtype: &str, bytes: &[u8]) -> &mut Self {
        self.global("numpy.core.multiarray", "_reconstruct")
            .global("numpy", "ndarray")
            .int(0)
            .raw(b"\x85")
            .put()
            .text(b"b");
        self.raw(b"\x87").put().raw(b"R").put().raw(b"(").int(1);
        for &n in shape {
            self.int(n);
        }
        self.raw(if shape.len() == 1 { b"\x85" } else { b"\x86" }).put();
        self.global("numpy", "dtype")
            .text(dtype.as_bytes())
            .int(0)
            .int(1)
            .raw(b"\x87")
            .put()
            .raw(b"R")
            .put();
        self.raw(b"(")
            .int(3)
            .text(b"<")
            .raw(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff")
            .int(0)
            .raw(b"t")
            .put()
            .raw(b"b");
        self.raw(b"\x89").text(bytes).raw(b"t").put().raw(b"b")
    }
    fn matrix(
        &mut self,
        rows: u32,
        cols: u32,
        indptr: &[i32],
        indices: &[i32],
        data: &[f32],
    ) -> &mut Self {
        self.global("scipy.sparse.csr", "csr_matrix").raw(b")\x81").put().raw(b"}").put().raw(b"(");
        self.text(b"_shape").int(rows).int(cols).raw(b"\x86").put().text(b"maxprint").int(50);
        self.text(b"indices").array(&[indices.len() as u32], "i4", bytemuck::cast_slice(indices));
        self.text(b"indptr").array(&[indptr.len() as u32], "i4", bytemuck::cast_slice(indptr));
        self.text(b"data").array(&[data.len() as u32], "f4", bytemuck::cast_slice(data)).raw(b"ub")
    }
    fn neighbours(&mut self, lists: &BTreeMap<u32, Vec<u32>>) -> &mut Self {
        self.global("collections", "defaultdict")
            .global("__builtin__", "list")
            .raw(b"\x85")
            .put()
            .raw(b"R")
            .put()
            .raw(b"(");
        for (&v, list) in lists {
            self.int(v).raw(b"]").put().raw(b"(");
            for &u in list {
                self.int(u);
            }
            self.raw(b"e");
        }
        self.raw(b"u")
    }
    pub(super) fn done(&mut self) -> Vec<u8> {
        self.raw(b".");
        std::mem::take(&mut self.out)
    }
}

/// A data set in the form of Planetoid: dense rows of words, a class (-1: none) per node, edges.
pub(super) struct Source {
    words: Vec<Vec<f32>>,
    classes: Vec<i64>,
    num_classes: usize,
    edges: Vec<(u32, u32)>,
    train: usize,
    /// Numbers of the test nodes in the order of the file; the others come before them.
    index: Vec<u32>,
}

impl Source {
    pub(super) fn write(&self, dir: &Path, name: &str) {
        std::fs::create_dir_all(dir).unwrap();
        let before = self.index.iter().min().copied().unwrap_or(self.words.len() as u32);
        let put = |part: &str, bytes: Vec<u8>| {
            std::fs::write(dir.join(format!("ind.{name}.{part}")), bytes).unwrap()
        };
        let matrix = |nodes: &[u32]| {
            let (mut indptr, mut indices, mut data) = (vec![0], vec![], vec![]);
            for &v in nodes {
                for (c, &x) in self.words[v as usize].iter().enumerate().filter(|(_, x)| **x != 0.0)
                {
                    indices.push(c as i32);
                    data.push(x);
                }
                indptr.push(indices.len() as i32);
            }
            Pickler::new()
                .matrix(nodes.len() as u32, self.words[0].len() as u32, &indptr, &indices, &data)
                .done()
        };
        let labels = |nodes: &[u32]| {
            let hot = |&v: &u32| {
                (0..self.num_classes as i64).map(move |c| i32::from(self.classes[v as usize] == c))
            };
            let values: Vec<i32> = nodes.iter().flat_map(hot).collect();
            Pickler::new()
                .array(
                    &[nodes.len() as u32, self.num_classes as u32],
                    "i4",
                    bytemuck::cast_slice(&values),
                )
                .done()
        };
        let all: Vec<u32> = (0..before).collect();
        let x = &all[..self.train];
        for (part, nodes) in [("x", x), ("allx", &all[..]), ("tx", &self.index[..])] {
            put(part, matrix(nodes));
        }
        for (part, nodes) in [("y", x), ("ally", &all[..]), ("ty", &self.index[..])] {
            put(part, labels(nodes));
        }
        let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        self.edges.iter().for_each(|&(u, v)| lists.entry(u).or_default().push(v));
        put("graph", Pickler::new().neighbours(&lists).done());
        put(
            "test.index",
            self.index.iter().map(|v| format!("{v}\n")).collect::<String>().into_bytes(),
        );
    }
}

/// Six nodes; the test nodes 5 and 3 in this order, node 4 is none of them.
pub(super) fn tiny() -> Source {
    Source {
        words: vec![
            vec![1., 0.],
            vec![0., 2.],
            vec![1., 1.],
            vec![0., 3.],
            vec![0., 0.],
            vec![4., 0.],
        ],
        classes: vec![0, 1, 1, 0, -1, 1],
        num_classes: 2,
        edges: vec![(0, 1), (1, 0), (2, 2), (3, 5), (3, 5), (5, 0)],
        train: 2,
        index: vec![5, 3],
    }
}

fn load(edit: impl FnOnce(&Path)) -> Result<Dataset, DataError> {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("cora");
    tiny().write(&dir, "cora");
    edit(&dir);
    Known::Cora.load_from(&DataHome::at(tmp.path()).offline())
}

#[test]
fn test_nodes_go_to_their_numbers() {
    let d = load(|_| {}).unwrap();
    assert_eq!(
        (d.name.as_str(), d.num_classes, &d.labels[..]),
        ("cora", 2, &[0, 1, 1, 0, -1, 1][..])
    );
    assert_eq!(d.features["_N"].to_dense(), [1., 0., 0., 2., 1., 1., 0., 3., 0., 0., 4., 0.]);
    let r = d.graph.relation("_E").unwrap();
    assert_eq!((r.src(), r.dst()), (&[0, 0, 1, 3, 5, 5][..], &[1, 5, 0, 5, 0, 3][..]));
    let s = &d.splits["public"];
    assert_eq!((&s.train[..], &s.val[..], &s.test[..]), (&[0, 1][..], &[2][..], &[3, 5][..]));
}

/// Cora itself, written in its official form, comes back as it is.
#[test]
fn cora_in_its_official_form() {
    let Some(dir) = burn_gnn_testutil::data("cora") else { return };
    let plain = load_dataset(dir).unwrap();
    let (features, n) = (&plain.features["paper"], plain.labels.len());
    let dense = features.to_dense();
    let r = &plain.graph.relations()[0];
    let mut index = plain.splits["public"].test.clone();
    index.reverse();
    let source = Source {
        words: dense.chunks_exact(features.cols()).map(<[f32]>::to_vec).collect(),
        classes: plain.labels.clone(),
        num_classes: plain.num_classes,
        edges: r.src().iter().copied().zip(r.dst().iter().copied()).collect(),
        train: plain.splits["public"].train.len(),
        index,
    };
    let tmp = tempfile::tempdir().unwrap();
    source.write(&tmp.path().join("cora"), "cora");
    let d = Known::Cora.load_from(&DataHome::at(tmp.path())).unwrap();
    assert_eq!((d.labels, d.num_classes, n), (plain.labels, 7, 2708));
    assert_eq!(d.features["_N"], *features);
    assert_eq!(d.splits["public"], plain.splits["public"]);
    assert_eq!(d.graph.total_edges(), 10_556);
    let mut edges: Vec<(u32, u32)> = r.src().iter().copied().zip(r.dst().iter().copied()).collect();
    edges.sort_unstable();
    let found = &d.graph.relations()[0];
    assert_eq!(
        found.src().iter().copied().zip(found.dst().iter().copied()).collect::<Vec<_>>(),
        edges
    );
}

#[test]
fn refusals() {
    let refused = |edit: &dyn Fn(&Path), part: &str| {
        let e = load(edit).unwrap_err();
        assert!(e.to_string().contains(part), "expected {part:?} in {e}");
        e
    };
    let put = |dir: &Path, part: &str, bytes: &[u8]| {
        std::fs::write(dir.join(format!("ind.cora.{part}")), bytes).unwrap()
    };
    // A pickle that would run a command.
    let e = refused(
        &|d| put(d, "graph", b"cos\nsystem\n(S'touch hacked'\ntR."),
        "found `os.system`, which is not run",
    );
    assert!(matches!(e, DataError::Format { .. }));
    refused(
        &|d| put(d, "graph", b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93."),
        "found `builtins.eval`, which is not run",
    );
    refused(&|d| put(d, "graph", b"\x80\x02i"), "expected an opcode of data, found 0x69");
    refused(&|d| put(d, "graph", b"\x80\x02]q\x00"), "found the end of the file");
    refused(
        &|d| put(d, "graph", b"\x80\x02]."),
        "expected a dictionary of neighbours, found a list of 0",
    );
    refused(
        &|d| put(d, "graph", b"\x80\x02}K\x09]s."),
        "expected a node id in 0..6, found the number 9",
    );
    refused(
        &|d| put(d, "graph", b"\x80\x02}(K\x00]q\x00K\x01h\x00u."),
        "a separate list of neighbours for each node",
    );
    refused(&|d| put(d, "graph", b"e."), "expected a mark, found none");
    refused(&|d| put(d, "graph", b"h\x07."), "expected a filled place of the memo, found 7");
    refused(&|d| put(d, "allx", b"K\x01."), "expected a CSR matrix of SciPy, found the number 1");
    refused(
        &|d| put(d, "ally", &Pickler::new().array(&[3], "i4", &[0; 12]).done()),
        "expected an array of rows and columns",
    );
    refused(
        &|d| put(d, "ally", &Pickler::new().array(&[1, 2], "i4", &[0; 8]).done()),
        "ally: expected 3 rows to match",
    );
    refused(
        &|d| put(d, "ally", &Pickler::new().array(&[3, 2], "f8", &[0; 48]).done()),
        "expected an array of whole numbers",
    );
    refused(
        &|d| put(d, "ally", &Pickler::new().array(&[3, 2], "i4", &[1; 24]).done()),
        "expected at most one class in each row",
    );
    refused(
        &|d| put(d, "ally", &Pickler::new().array(&[3, 9], "i4", &[0; 24]).done()),
        "expected the bytes of an array [3, 9] of i4, found 24",
    );
    refused(
        &|d| put(d, "ally", &Pickler::new().array(&[3, 2], "O8", &[0; 48]).done()),
        "found an array of dtype \"O8\"",
    );
    let wide = Pickler::new().matrix(2, 3, &[0, 0, 0], &[], &[]).done();
    refused(&|d| put(d, "tx", &wide), "expected 2 columns as in allx, found 3");
    let short = Pickler::new().matrix(3, 2, &[0, 0], &[], &[]).done();
    refused(&|d| put(d, "allx", &short), "indptr: expected 4 entries for 3 rows, found 2");
    refused(
        &|d| put(d, "test.index", b"5\n5\n"),
        "test.index:2:1: expected a node id that occurs once, got \"5\"",
    );
    refused(&|d| put(d, "test.index", b"5\nx\n"), "test.index:2:1: expected a node id, got \"x\"");
    refused(&|d| put(d, "test.index", b"5\n1\n"), "expected numbers in 3..71, found 1");
    refused(&|d| put(d, "test.index", b"5\n"), "tx: expected 1 rows to match");
    let e = refused(
        &|d| std::fs::remove_file(d.join("ind.cora.ty")).unwrap(),
        "ind.cora.ty (from https://github.com/kimiyoung/planetoid",
    );
    assert!(
        matches!(e, DataError::DataMissing { set: "cora", .. })
            && e.to_string().contains("BURN_GNN_DATA")
    );
}

/// What other protocols write instead.
#[test]
fn other_protocols() {
    let home = |graph: &[u8]| load(|d| std::fs::write(d.join("ind.cora.graph"), graph).unwrap());
    // Protocol 0: all in text.
    let text = b"(dp0\nI0\n(lp1\nI1\naL2L\nas.";
    // Protocol 4: frames, memo by count.
    let four = b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94(K\x00]\x94(K\x01\x8a\x01\x02eu.";
    for bytes in [&text[..], four] {
        let r = home(bytes).unwrap().graph.relations()[0].clone();
        assert_eq!((r.src(), r.dst()), (&[0, 0, 1, 2][..], &[1, 2, 0, 0][..]));
    }
    assert_eq!(
        home(b"\x80\x02}J\xff\xff\xff\xff]s.").unwrap_err().to_string().split("found ").last(),
        Some("the number -1")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_damaged_file_never_panics(d in crate::files::corrupt_file::damage()) {
        let _ = load(|dir| crate::files::corrupt_file::spoil(dir, d));
    }
}
