//! Reads the `.npz` files of gnn-benchmark: an attributed graph as arrays of sparse matrices.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Graph;

use crate::arrays::npy::NpyValues;
use crate::dataset::sparse::csr;
use crate::dataset::{Dataset, Features, described_class_names};
use crate::files::{cut, format_error, node_count, same_count};
use crate::formats::npz::Npz;

/// Reads a graph of gnn-benchmark (`amazon_electronics_photo.npz`, `ms_academic_cs.npz`, `cora_full.npz`, …). PyG's `Amazon`,
/// `Coauthor` and `CitationFull` and DGL's `AmazonCoBuyPhotoDataset` and `CoauthorCSDataset` use these files.
///
/// | arrays | result |
/// | --- | --- |
/// | `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape` | edges `row -> column` of a homogeneous graph, in the order of the file |
/// | `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape` | sparse features |
/// | `attr_matrix` | dense features |
/// | `labels` | classes |
/// | `class_names` | names of classes, if they are texts; an array of Python objects is ignored |
///
/// The names of `sparsegraph` (`adj_matrix.data`) are accepted, too. Other arrays are ignored. PyG and DGL also add reverse
/// edges, merge parallel edges and remove self loops; use [`Graph::add_reverse_edges`], [`Graph::to_simple`] and
/// [`Graph::remove_self_loops`] for that. The files define no split; draw one with [`Split::random`](crate::Split::random).
///
/// # Paper
/// Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018.
///
/// # Errors
/// * [`DataError::Io`] if the file cannot be read.
/// * [`DataError::Format`] for a missing array, wrong lengths, offsets that decrease, ids out of range, and an adjacency
///   matrix that is not square or has values other than 1. A [`Dataset`] cannot contain edge weights; read the arrays with
///   [`Npz`].
///
/// # Cost
/// Memory: the decoded arrays, at most 16 MiB plus 256 times the length of the file.
pub fn load_gnn_benchmark(path: impl AsRef<Path>) -> Result<Dataset, DataError> {
    let path = path.as_ref();
    read(path).map_err(|e| e.in_file(path))
}

fn read(path: &Path) -> Result<Dataset, DataError> {
    let mut file = Npz::open(path)?;
    let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
    let Some(adjacency) = Parts::find(&file, "adj") else {
        let why = format!(
            "expected arrays `adj_data`, `adj_indices`, `adj_indptr` and `adj_shape`, found {}",
            cut(&format!("{:?}", file.names()))
        );
        return Err(format_error(path, why));
    };
    let adjacency = adjacency.read(&mut file, path, bytes)?;
    let Features::Sparse { rows, cols, row, col, value } = adjacency else {
        unreachable!("`csr` returns sparse features")
    };
    if rows != cols {
        let why = format!("adj_shape: expected a square matrix, found {rows} x {cols}");
        return Err(format_error(path, why));
    }
    if let Some(other) = value.iter().find(|&&v| v != 1.0) {
        let why = format!("adj_data: expected ones, found {other}; read the arrays with `Npz`");
        return Err(format_error(path, why));
    }
    let has = |file: &Npz, name: &str| file.names().iter().any(|n| n == name);
    let features = if let Some(parts) = Parts::find(&file, "attr") {
        Some(parts.read(&mut file, path, bytes)?)
    } else if has(&file, "attr_matrix") {
        let array = file.read("attr_matrix")?;
        array.expect_shape(&[Some(rows), None])?;
        let cols = array.shape()[1];
        Some(Features::Dense { rows, cols, values: array.into_floats()? })
    } else {
        None
    };
    if let Some(features) = &features {
        same_count(path, "rows of features", rows as u64, features.rows())?;
    }
    let labels = file.read("labels")?;
    labels.expect_shape(&[Some(rows)])?;
    let labels: Vec<i64> = labels.into_i64()?.into_iter().map(|l| l.max(-1)).collect();
    let num_classes = labels.iter().max().map_or(0, |&m| (m + 1).max(0)) as u64;
    let names = match has(&file, "class_names").then(|| file.read("class_names")) {
        Some(Ok(array)) => match array.values {
            NpyValues::Text(names) if names.len() as u64 == num_classes => Some(names),
            _ => None,
        },
        _ => None,
    };
    let class_names = described_class_names(path, num_classes, names, rows)?;
    let name = path.file_stem().map_or(String::new(), |n| n.to_string_lossy().into_owned());
    let graph = Graph::homogeneous(rows, row, col)?;
    let target = graph.schema().ntypes()[0].clone();
    Ok(Dataset {
        name,
        graph,
        num_classes: class_names.len(),
        class_names,
        labels,
        features: features.map(|f| (target.clone(), f)).into_iter().collect(),
        target,
        splits: BTreeMap::new(),
        inverse_edges_stored: false,
    })
}

/// The names of the arrays of a matrix in CSR form.
struct Parts(String);

impl Parts {
    /// Finds the arrays of a matrix: `adj_data`, … or `adj_matrix.data`, ….
    fn find(file: &Npz, what: &str) -> Option<Self> {
        let prefixes = [format!("{what}_"), format!("{what}_matrix.")];
        let has = |prefix: &String| file.names().iter().any(|n| *n == format!("{prefix}indptr"));
        prefixes.into_iter().find(has).map(Self)
    }

    fn read(&self, file: &mut Npz, path: &Path, bytes: u64) -> Result<Features, DataError> {
        let mut ints = |part: &str| {
            let array = file.read(&format!("{}{part}", self.0))?;
            array.expect_shape(&[None])?;
            array.into_i64()
        };
        let (shape, indptr, indices) = (ints("shape")?, ints("indptr")?, ints("indices")?);
        let wrong = || {
            let found = cut(&format!("{shape:?}"));
            format_error(path, format!("{}shape: expected rows and columns, found {found}", self.0))
        };
        let &[rows, cols] = shape.as_slice() else { return Err(wrong()) };
        let (Ok(rows), Ok(cols)) = (u64::try_from(rows), u64::try_from(cols)) else {
            return Err(wrong());
        };
        let rows = node_count(path, "of the rows", rows, bytes)?;
        let cols = node_count(path, "of the columns", cols, bytes)?;
        let data = file.read(&format!("{}data", self.0))?;
        data.expect_shape(&[None])?;
        csr(path, rows, cols, &indptr, indices, data.into_floats()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::npy::npy_bytes;
    use crate::formats::npz::npz_bytes;

    /// Arrays of a file, `edit` applied last.
    fn load(edit: impl FnOnce(&mut Vec<(String, Vec<u8>)>)) -> Result<Dataset, DataError> {
        let i32s = |v: &[i32]| {
            npy_bytes("<i4", false, &format!("({},)", v.len()), bytemuck::cast_slice(v))
        };
        let i64s = |v: &[i64]| {
            npy_bytes("<i8", false, &format!("({},)", v.len()), bytemuck::cast_slice(v))
        };
        let f32s = |v: &[f32]| {
            npy_bytes("<f4", false, &format!("({},)", v.len()), bytemuck::cast_slice(v))
        };
        let mut arrays: Vec<(String, Vec<u8>)> = [
            ("adj_data", f32s(&[1., 1., 1.])),
            ("adj_indices", i32s(&[1, 2, 0])),
            ("adj_indptr", i32s(&[0, 2, 2, 3])),
            ("adj_shape", i64s(&[3, 3])),
            ("attr_data", f32s(&[1., 2.])),
            ("attr_indices", i32s(&[1, 0])),
            ("attr_indptr", i32s(&[0, 1, 1, 2])),
            ("attr_shape", i64s(&[3, 2])),
            ("labels", i64s(&[0, 2, 1])),
        ]
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .to_vec();
        edit(&mut arrays);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("amazon_electronics_photo.npz");
        let named: Vec<(&str, Vec<u8>)> =
            arrays.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
        std::fs::write(&path, npz_bytes(&named, true)).unwrap();
        load_gnn_benchmark(&path)
    }

    #[test]
    fn matrices_in_parts() {
        let d = load(|_| {}).unwrap();
        let r = d.graph.relation("_E").unwrap();
        assert_eq!((r.src(), r.dst()), (&[0, 0, 2][..], &[1, 2, 0][..]));
        assert_eq!(
            (d.name.as_str(), d.num_classes, d.labels.as_slice()),
            ("amazon_electronics_photo", 3, &[0, 2, 1][..])
        );
        assert_eq!(d.features["_N"].to_dense(), [0., 1., 0., 0., 2., 0.]);
        assert!(d.splits.is_empty());
        // Names of `sparsegraph`, dense features.
        let d = load(|arrays| {
            arrays.retain(|(name, _)| !name.starts_with("attr"));
            arrays.iter_mut().for_each(|(name, _)| *name = name.replace("adj_", "adj_matrix."));
            let dense = npy_bytes("<f4", false, "(3, 1)", bytemuck::cast_slice(&[5f32, 6., 7.]));
            arrays.push(("attr_matrix".into(), dense));
        })
        .unwrap();
        assert_eq!(d.features["_N"].to_dense(), [5., 6., 7.]);
    }

    #[test]
    fn refusals() {
        type Arrays = Vec<(String, Vec<u8>)>;
        let refused = |edit: &dyn Fn(&mut Arrays), part: &str| {
            let e = load(|arrays| edit(arrays)).unwrap_err().to_string();
            assert!(
                e.contains("amazon_electronics_photo.npz") && e.contains(part),
                "expected {part:?} in {e}"
            );
        };
        let ints = |v: &[i64]| {
            npy_bytes("<i8", false, &format!("({},)", v.len()), bytemuck::cast_slice(v))
        };
        refused(&|a| drop(a.remove(2)), "expected arrays `adj_data`");
        refused(&|a| drop(a.remove(8)), "expected an array `labels`");
        refused(&|a| a[3].1 = ints(&[3, 4]), "expected a square matrix, found 3 x 4");
        refused(&|a| a[3].1 = ints(&[-1, 4]), "adj_shape: expected rows and columns");
        refused(&|a| a[2].1 = ints(&[0, 2, 1, 3]), "expected entries that never decrease");
        refused(&|a| a[1].1 = ints(&[1, 2, 3]), "col of entry 2: expected 0..3, found 3");
        refused(&|a| a[8].1 = ints(&[0, 1]), "expected shape");
        refused(&|a| a[0].1 = ints(&[1, 2, 1]), "adj_data: expected ones, found 2");
        refused(
            &|a| {
                a[6].1 = ints(&[0, 1, 2]);
                a[7].1 = ints(&[2, 2])
            },
            "rows of features: expected 3",
        );
    }
}
