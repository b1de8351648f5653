//! Reads `.npz` files: archives of NumPy arrays, and sparse matrices of SciPy.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::Graph;
use zip::ZipArchive;

use crate::arrays::npy::{NpyArray, NpyValues};
use crate::columns::host_column::f32_column;
use crate::dataset::Features;
use crate::dataset::sparse::{coo, csr};
use crate::files::decompression_limit::{MAX_EXPANSION, expansion_limit};
use crate::files::{cut, format_error, node_count, open, open_zip, zip_error};
use crate::tables::schema::column_names::WEIGHT;

/// An open `.npz` file: the zip archive of arrays that `numpy.savez` and `numpy.savez_compressed` write.
///
/// ```no_run
/// use burn_gnn_data::Npz;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let mut file = Npz::open("reddit_data.npz")?;
///     let labels = file.read("label")?.into_i64()?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    names: Vec<String>,
    /// Largest accepted total size of the arrays in bytes.
    limit: u64,
}

impl Npz {
    /// Opens a file and reads the names of its arrays.
    ///
    /// # Errors
    /// * [`DataError::Io`] if the file cannot be read.
    /// * [`DataError::Format`] for a file that is not a zip archive, an entry that is not a `.npy` array, a repeated name,
    ///   and arrays of more than 16 MiB plus 256 times the length of the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        let path = path.as_ref();
        let (file, len) = open(path)?;
        let wrong = |why: String| format_error(path, why);
        let archive = open_zip(path, BufReader::with_capacity(1 << 16, file))?;
        let limit = expansion_limit(len, MAX_EXPANSION);
        // A malicious archive can refer to the same compressed bytes many times, so the sum is limited.
        if let Some(size) = archive.decompressed_size().filter(|&size| size > u128::from(limit)) {
            return Err(wrong(format!(
                "expected arrays of at most {limit} bytes, found {size}; save it without compression"
            )));
        }
        let mut names = vec![];
        for name in archive.file_names() {
            let name = name.map_err(|e| zip_error(path, e))?;
            let Some(stem) = name.strip_suffix(".npy") else {
                return Err(wrong(format!(
                    "expected arrays only (`….npy`), found an entry {:?}",
                    cut(&name)
                )));
            };
            names.push(stem.to_owned());
        }
        names.sort();
        if let Some(twice) = names.windows(2).find(|w| w[0] == w[1]) {
            return Err(wrong(format!(
                "expected distinct names of arrays, found `{}` twice",
                cut(&twice[0])
            )));
        }
        Ok(Self { path: path.into(), archive, names, limit })
    }
    /// Names of the arrays, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// Reads an array.
    ///
    /// # Errors
    /// [`DataError::Format`] for an unknown name and for a wrong checksum; those of [`read_npy`](crate::read_npy).
    pub fn read(&mut self, name: &str) -> Result<NpyArray, DataError> {
        let Ok(_) = self.names.binary_search_by(|n| n.as_str().cmp(name)) else {
            return Err(format_error(
                &self.path,
                format!("expected an array `{name}`, found {}", cut(&format!("{:?}", self.names))),
            ));
        };
        let label = self.path.join(name);
        let entry =
            self.archive.by_name(&format!("{name}.npy")).map_err(|e| zip_error(&label, e))?;
        let (size, limit) = (entry.size(), self.limit);
        if size > limit {
            return Err(format_error(
                &label,
                format!(
                    "expected at most {limit} bytes, found {size}; save it without compression"
                ),
            ));
        }
        NpyArray::from_reader(&label, entry, size, false)
    }

    fn i64s(&mut self, name: &str) -> Result<Vec<i64>, DataError> {
        let array = self.read(name)?;
        array.expect_shape(&[None])?;
        array.into_i64()
    }
}

/// Reads a sparse matrix that `scipy.sparse.save_npz` wrote, in COO, CSR or CSC format. Entries keep the order of the file,
/// and values are converted to f32.
///
/// # Errors
/// * [`DataError::Io`] if the file cannot be read.
/// * [`DataError::Format`] for another sparse format, wrong lengths of arrays, offsets that decrease, ids out of range,
///   values that f32 cannot represent, and numbers of rows or columns that are too large for the file.
pub fn read_scipy_npz(path: impl AsRef<Path>) -> Result<Features, DataError> {
    let path = path.as_ref();
    let wrong = |why: String| format_error(path, why);
    let mut file = Npz::open(path)?;
    let format = match file.read("format")?.values {
        NpyValues::Text(t) if t.len() == 1 => t[0].clone(),
        other => {
            return Err(wrong(format!(
                "format: expected one text, found {}",
                cut(&format!("{other:?}"))
            )));
        }
    };
    let shape = file.i64s("shape")?;
    let &[rows, cols] = shape.as_slice() else {
        return Err(wrong(format!(
            "shape: expected rows and columns, found {}",
            cut(&format!("{shape:?}"))
        )));
    };
    let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
    let size = |what: &str, n: i64| match u64::try_from(n) {
        Ok(n) => node_count(path, what, n, bytes),
        Err(_) => Err(wrong(format!("shape: expected a number of {what}, found {n}"))),
    };
    let (rows, cols) = (size("rows", rows)?, size("columns", cols)?);
    let values = file.read("data")?;
    values.expect_shape(&[None])?;
    let values = values.into_floats()?;
    match format.as_str() {
        "coo" => coo(path, rows, cols, file.i64s("row")?, file.i64s("col")?, values),
        by @ ("csr" | "csc") => {
            let (indptr, indices) = (file.i64s("indptr")?, file.i64s("indices")?);
            if by == "csr" {
                csr(path, rows, cols, &indptr, indices, values)
            } else {
                csr(path, cols, rows, &indptr, indices, values).map(transposed)
            }
        }
        other => Err(wrong(format!("format: expected coo, csr or csc, found {:?}", cut(other)))),
    }
}

fn transposed(m: Features) -> Features {
    match m {
        Features::Sparse { rows, cols, row, col, value } => {
            Features::Sparse { rows: cols, cols: rows, row: col, col: row, value }
        }
        dense => dense,
    }
}

/// Reads a square matrix that `scipy.sparse.save_npz` wrote as the adjacency matrix of a homogeneous graph.
///
/// Each entry is an edge `row -> column`, in the order of the file. The values are the edge column [`WEIGHT`].
///
/// ```no_run
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let g = burn_gnn_data::load_scipy_npz("adjacency.npz", &burn::tensor::Device::flex())?;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// Those of [`read_scipy_npz`], and [`DataError::Format`] for a matrix that is not square.
pub fn load_scipy_npz(path: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    let path = path.as_ref();
    let Features::Sparse { rows, cols, row, col, value } = read_scipy_npz(path)? else {
        unreachable!("`read_scipy_npz` returns sparse features");
    };
    if rows != cols {
        return Err(format_error(
            path,
            format!("expected a square matrix, found {rows} rows and {cols} columns"),
        ));
    }
    let mut graph =
        Graph::homogeneous(rows, row, col).map_err(|e| DataError::from(e).in_file(path))?;
    let weights = f32_column(value, [graph.relations()[0].num_edges()], device);
    graph.edges_mut(0)?.insert_column(WEIGHT, weights)?;
    Ok(graph)
}

/// Builds an archive from names and bytes of `.npy` files, for tests.
#[cfg(test)]
pub(crate) fn npz_bytes(arrays: &[(&str, Vec<u8>)], compressed: bool) -> Vec<u8> {
    use std::io::Write;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrays::npy::npy_bytes;

    fn i4(v: &[i32]) -> Vec<u8> {
        npy_bytes("<i4", false, &format!("({},)", v.len()), bytemuck::cast_slice(v))
    }
    fn f8(v: &[f64]) -> Vec<u8> {
        npy_bytes("<f8", false, &format!("({},)", v.len()), bytemuck::cast_slice(v))
    }
    fn text(t: &str) -> Vec<u8> {
        npy_bytes(&format!("|S{}", t.len()), false, "()", t.as_bytes())
    }
    fn shape(rows: i64, cols: i64) -> Vec<u8> {
        npy_bytes("<i8", false, "(2,)", bytemuck::cast_slice(&[rows, cols]))
    }

    fn put(arrays: &[(&str, Vec<u8>)], compressed: bool) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npz");
        std::fs::write(&path, npz_bytes(arrays, compressed)).unwrap();
        (dir, path)
    }

    /// [[0, 5, 0], [6, 0, 7]]
    fn matrix(form: &str) -> Vec<(&'static str, Vec<u8>)> {
        let mut out = vec![("format", text(form)), ("shape", shape(2, 3))];
        match form {
            "coo" => out.extend([
                ("row", i4(&[1, 0, 1])),
                ("col", i4(&[2, 1, 0])),
                ("data", f8(&[7., 5., 6.])),
            ]),
            "csr" => out.extend([
                ("indptr", i4(&[0, 1, 3])),
                ("indices", i4(&[1, 0, 2])),
                ("data", f8(&[5., 6., 7.])),
            ]),
            _ => out.extend([
                ("indptr", i4(&[0, 1, 2, 3])),
                ("indices", i4(&[1, 0, 1])),
                ("data", f8(&[6., 5., 7.])),
            ]),
        }
        out
    }

    #[test]
    fn three_forms_of_one_matrix() {
        for form in ["coo", "csr", "csc"] {
            for compressed in [false, true] {
                let (_dir, path) = put(&matrix(form), compressed);
                let m = read_scipy_npz(&path).unwrap();
                assert_eq!(
                    (m.rows(), m.cols(), m.to_dense()),
                    (2, 3, vec![0., 5., 0., 6., 0., 7.]),
                    "{form}"
                );
            }
        }
        let mut square = matrix("coo");
        square[1].1 = shape(3, 3);
        let (_dir, path) = put(&square, true);
        let g = load_scipy_npz(&path, &Device::flex()).unwrap();
        let r = g.relation("_E").unwrap();
        assert_eq!((r.num_src(), r.src(), r.dst()), (3, &[1, 0, 1][..], &[2, 1, 0][..]));
        assert_eq!(
            g.edges("_E")
                .unwrap()
                .get::<1>(WEIGHT)
                .unwrap()
                .into_data()
                .try_to_vec::<f32>()
                .unwrap(),
            [7., 5., 6.]
        );
        let (_dir, path) = put(&matrix("coo"), true);
        assert!(
            load_scipy_npz(&path, &Device::flex())
                .unwrap_err()
                .to_string()
                .contains("square matrix, found 2 rows and 3 columns")
        );
    }

    #[test]
    fn arrays_by_name() {
        let (_dir, path) = put(&[("b", i4(&[1, 2])), ("a", f8(&[0.5]))], true);
        let mut file = Npz::open(&path).unwrap();
        assert_eq!(file.names(), ["a", "b"]);
        assert_eq!(file.read("b").unwrap().into_i64().unwrap(), [1, 2]);
        assert_eq!(file.read("a").unwrap().path(), path.join("a"));
        assert!(
            file.read("c")
                .unwrap_err()
                .to_string()
                .contains(r#"expected an array `c`, found ["a", "b"]"#)
        );
    }

    #[test]
    fn refusals() {
        let refused = |arrays: &[(&str, Vec<u8>)], part: &str| {
            let (_dir, path) = put(arrays, true);
            let e = read_scipy_npz(&path).unwrap_err();
            assert!(
                matches!(e, DataError::Format { .. }) && e.to_string().contains(part),
                "expected {part:?} in {e}"
            );
        };
        let with = |form: &str, name: &str, bytes: Vec<u8>| {
            let mut all = matrix(form);
            all.iter_mut().find(|a| a.0 == name).unwrap().1 = bytes;
            all
        };
        refused(&[("format", text("csr"))], "expected an array `shape`");
        refused(&with("csr", "format", text("bsr")), "expected coo, csr or csc, found \"bsr\"");
        refused(&with("csr", "format", i4(&[1])), "format: expected one text");
        refused(&with("csr", "shape", i4(&[2])), "shape: expected rows and columns, found [2]");
        refused(&with("csr", "shape", i4(&[-2, 3])), "shape: expected a number of rows, found -2");
        refused(
            &with("csr", "indptr", i4(&[0, 3])),
            "indptr: expected 3 entries for 2 rows, found 2",
        );
        refused(&with("csr", "indptr", i4(&[0, 1, 2])), "indptr: expected 0 to 3, found 0 to 2");
        refused(
            &with("csr", "indptr", i4(&[0, 9, 3])),
            "expected entries that never decrease, found 3 after 9 at 2",
        );
        refused(&with("csr", "indices", i4(&[1, 0, 3])), "col of entry 2: expected 0..3, found 3");
        refused(
            &with("coo", "row", i4(&[1, 0])),
            "row: expected 3 entries, one per value, found 2",
        );
        refused(&with("coo", "data", text("abc")), "expected shape [any], found []");
        refused(&[("x/../y", i4(&[1])), ("x", b"no array".to_vec())], "expected an array `format`");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npz");
        std::fs::write(&path, "no archive").unwrap();
        assert!(Npz::open(&path).unwrap_err().to_string().contains("expected a zip archive"));
    }

    #[test]
    fn names_of_the_directory_are_those_of_the_entries() {
        let whole = npz_bytes(&[("src", i4(&[1, 2])), ("dst", i4(&[3, 4]))], false);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npz");
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(Npz::open(&path).unwrap().read("dst").unwrap().into_i64().unwrap(), [3, 4]);
        // The names of the directory, the last two, exchanged.
        let mut bytes = whole;
        let all: Vec<usize> =
            (0..bytes.len() - 7).filter(|&i| bytes[i..].starts_with(b".npy")).collect();
        let [.., src, dst] = all[..] else { panic!("{all:?}") };
        bytes[src - 3..src].copy_from_slice(b"dst");
        bytes[dst - 3..dst].copy_from_slice(b"src");
        std::fs::write(&path, bytes).unwrap();
        let e = Npz::open(&path).unwrap_err().to_string();
        assert!(e.contains("entry `dst.npy`: expected the same name in the directory"), "{e}");
    }

    #[test]
    fn arrays_in_fortran_order() {
        let mask = npy_bytes("|b1", true, "(2, 2)", &[1, 0, 0, 0]);
        let labels = npy_bytes(">u2", false, "(2,)", &[1, 0, 0, 2]);
        for compressed in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.npz");
            let arrays = [("mask", mask.clone()), ("labels", labels.clone())];
            std::fs::write(&path, npz_bytes(&arrays, compressed)).unwrap();
            let mut file = Npz::open(&path).unwrap();
            let mask = file.read("mask").unwrap();
            assert_eq!(mask.values(), &NpyValues::Bool(vec![true, false, false, false]));
            assert_eq!(file.read("labels").unwrap().into_i64().unwrap(), [256, 2]);
        }
    }

    #[test]
    fn damage_is_seen_by_the_checksum() {
        let mut bytes = npz_bytes(&[("a", i4(&[1, 2, 3, 4]))], false);
        let at = bytes.windows(4).position(|w| w == 3i32.to_le_bytes()).unwrap();
        bytes[at] ^= 64;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.npz");
        std::fs::write(&path, bytes).unwrap();
        let e = Npz::open(&path).unwrap().read("a").unwrap_err();
        assert!(matches!(e, DataError::Format { .. }), "{e}");
    }
}
