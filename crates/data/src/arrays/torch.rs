//! Reads the tensors of files that `torch.save` wrote; runs no code.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use burn::tensor::TensorData;
use burn_gnn_files::DataError;
use zip::{CompressionMethod, ZipArchive};

use crate::arrays::pickle::{Id, Pickle, StorageType, Value, View, Vocabulary};
use crate::files::{cut, format_error, io_error, open, open_zip, read_file, reserve, zip_error};

/// Most levels of nested containers.
const MOST_DEEP: usize = 16;
/// Longest pickle. Positions in a pickle have 32 bits, and half of them are for decoded text.
const MOST_PICKLE: u64 = 1 << 30;
/// Most parts of a key that is a tuple; edge types have three.
const MOST_PARTS: usize = 8;
/// Longest key of a storage; PyTorch uses numbers.
const MOST_KEY: usize = 64;
/// Values that may be visited in any pickle.
const FREE: u64 = 1 << 16;
/// Memory of a tensor in addition to its elements.
const PER_TENSOR: u64 = 400;
/// Memory of a name in addition to its characters.
const PER_NAME: u64 = 64;

/// Magic number of PyTorch before 1.6, in the first bytes of a file.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
/// Number of bytes that contain it.
const MAGIC_WITHIN: usize = 32;
/// First bytes of a file of `dgl.save_graphs`.
const DGL_MAGIC: [u8; 8] = 0xDD2E_4FF0_46B4_A13F_u64.to_le_bytes();
/// Magic of a tar archive, and its position. PyTorch before 0.1.10 wrote tar archives.
const TAR: (usize, &[u8]) = (257, b"ustar");
/// Number of bytes that contain all magic numbers.
const FIRST: u64 = 512;

/// The name and the data of a tensor. Tensors that are the same part of the same storage share their data.
pub type NamedTensor = (String, Arc<TensorData>);

/// Reads a file of `torch.save`: a tensor, or dictionaries, lists, tuples and sets of tensors, nested. Their
/// keys and positions, joined by dots, are the names: `conv1.weight` for a state dict, `model.conv1.weight` for a
/// checkpoint `{"model": model.state_dict(), "epoch": 7}`, `x.paper` and `edge_index.author:writes:paper` where keys
/// are tuples. Numbers, texts, bytes, devices, sizes, dtypes and values of NumPy are left out.
///
/// A `.pt` file is a pickle, a program that may call any function of Python. This reader supports tensors and
/// containers, returns an error for any other name, and runs no code. So a `Data` object of PyTorch Geometric is an
/// error: save `data.to_dict()`, as PyTorch Geometric 2.4 and later does in its own `data.pt`.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for another file, big endian numbers, a name that is not a tensor or a
/// container (a whole module: save its `state_dict()`), damage, element types other than floats of 16 to 64 bits,
/// integers and bool, tensors that repeat elements (`expand`), and tensors that overlap in a storage so that they take
/// much more memory than the file.
///
/// # Cost
/// Memory for the tensors and for one storage at a time; for files of PyTorch before 1.6, the whole file.
///
/// ```no_run
/// for (name, data) in burn_gnn_data::read_torch("model.pt")? {
///     println!("{name}: {:?}", data.shape());
/// }
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
pub fn read_torch(path: impl AsRef<Path>) -> Result<Vec<NamedTensor>, DataError> {
    let path = path.as_ref();
    let (file, len) = open(path)?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut first = vec![];
    file.by_ref().take(FIRST).read_to_end(&mut first).map_err(|e| io_error(path, e))?;
    if first.starts_with(&DGL_MAGIC) {
        let message = "expected a file that `torch.save` wrote, found graphs of DGL (`dgl.save_graphs`); load them in \
             Python and save their arrays as `.npy` for `load_chunked`, or as dictionaries of tensors by `torch.save`";
        return Err(format_error(path, message));
    }
    if first.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
        let message = "expected a file that `torch.save` wrote, found a tar archive, the format of PyTorch before 0.1.10; load it \
             in PyTorch by `torch.load(path, weights_only=False)` and save the state dict again by `torch.save`";
        return Err(format_error(path, message));
    }
    file.rewind().map_err(|e| io_error(path, e))?;
    if first.first() == Some(&0x80) {
        let magic = &first[..first.len().min(MAGIC_WITHIN)];
        if !magic.windows(MAGIC.len()).any(|part| part == MAGIC) {
            let message = "expected a file that `torch.save` wrote, found another pickle; save its tensors by `torch.save`";
            return Err(format_error(path, message));
        }
        drop(file);
        return read_before_1_6(path);
    }
    let mut archive = Archive::new(path, file, len)?;
    let bytes = archive.read("data.pkl", MOST_PICKLE)?;
    if archive.has("byteorder") {
        let order = archive.read("byteorder", 16)?;
        if order != b"little" {
            let found = cut(&String::from_utf8_lossy(&order));
            return Err(big_endian(path, &format!("byte order `{found}`")));
        }
    }
    let pickle = Pickle::read(path, &bytes, Vocabulary::Torch)?;
    tensors(path, len, &pickle, bytes.len() as u64, |key| {
        archive.read(&format!("data/{key}"), u64::MAX).map(Cow::from)
    })
}

fn big_endian(path: &Path, found: &str) -> DataError {
    format_error(path, format!("expected little endian numbers, found {found}"))
}

/// Reads the format of PyTorch before 1.6: pickles of a magic number, a version, the system, the object, and the keys of
/// storages in ascending order; then, for each storage, its number of elements and their bytes.
fn read_before_1_6(path: &Path) -> Result<Vec<NamedTensor>, DataError> {
    let bytes = read_file(path)?;
    let mut at = 0;
    let mut next = || {
        // A longer pickle is cut here, and its reader returns an error at the cut.
        let rest = &bytes[at..bytes.len().min(at + MOST_PICKLE as usize - 1)];
        let pickle = Pickle::read(path, rest, Vocabulary::Torch)?;
        at += pickle.end;
        Ok::<_, DataError>(pickle)
    };
    let (_magic, _version, system) = (next()?, next()?, next()?);
    if let Ok(little) = system.entry(system.top(), "little_endian")
        && matches!(system.get(little), Value::Bool(false))
    {
        return Err(big_endian(path, "a file of a big endian machine"));
    }
    let (pickle, keys) = (next()?, next()?);
    let mut kinds = HashMap::new();
    for (key, kind) in pickle.storages() {
        if *kinds.entry(key).or_insert(kind) != kind {
            let why = format!("storage `{}`: expected one element type, found two", cut(key));
            return Err(format_error(path, why));
        }
    }
    let mut places = HashMap::new();
    for &key in keys.list(keys.top()).ok_or_else(|| keys.wrong("a list of keys", keys.top()))? {
        let key = keys.text(key).ok_or_else(|| keys.wrong("a text as key", key))?;
        let wrong = |why: String| format_error(path, format!("storage `{}`: {why}", cut(key)));
        let kind =
            kinds.get(key).ok_or_else(|| wrong("expected a tensor of it, found none".into()))?;
        let (count, body) = bytes[at..]
            .split_first_chunk()
            .ok_or_else(|| wrong("expected its length, found the end of the file".into()))?;
        let count = u64::from_le_bytes(*count);
        let size = usize::try_from(count).ok().and_then(|n| n.checked_mul(kind.dtype().size()));
        let Some(size) = size.filter(|&size| size <= body.len()) else {
            return Err(wrong(format!(
                "expected its {count} elements, found {} bytes up to the end of the file",
                body.len()
            )));
        };
        at += 8;
        places.insert(key, at..at + size);
        at += size;
    }
    let pickled = pickle.end as u64;
    tensors(path, bytes.len() as u64, &pickle, pickled, |key| match places.get(key) {
        Some(place) => Ok(Cow::from(&bytes[place.clone()])),
        None => Err(format_error(
            path,
            format!("storage `{}`: expected its elements, found none", cut(key)),
        )),
    })
}

/// Reads the tensors of a pickle of `pickled` bytes in a file of `len` bytes; `storage` reads a storage by its key.
fn tensors<'a>(
    path: &Path,
    len: u64,
    pickle: &Pickle<'_>,
    pickled: u64,
    mut storage: impl FnMut(&str) -> Result<Cow<'a, [u8]>, DataError>,
) -> Result<Vec<NamedTensor>, DataError> {
    let mut walk = Walk {
        path,
        pickle,
        left: pickled.saturating_add(FREE),
        room: pickle.memory_left(),
        found: vec![],
    };
    walk.visit(pickle.top(), "", 0)?;
    let named = std::mem::take(&mut walk.found);
    // Elements are outside of the pickle.
    let mut room = len.saturating_sub(pickled).saturating_add(walk.room);
    // Grouped by storage, so that each storage is read once. Names may share tensors, and tensors may share data.
    let mut by_key: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for at in named.iter().map(|n| n.1).collect::<BTreeSet<_>>() {
        let key = pickle.storage_key(at);
        if key.len() > MOST_KEY {
            return Err(format_error(
                path,
                format!(
                    "expected keys of storages of up to {MOST_KEY} bytes, found `{}`",
                    cut(key)
                ),
            ));
        }
        by_key.entry(key).or_default().push(at);
    }
    let mut tensors: HashMap<u32, Arc<TensorData>> = HashMap::new();
    for (key, all) in by_key {
        let storage = storage(key)?;
        let mut made: HashMap<(StorageType, View), Arc<TensorData>> = HashMap::new();
        for at in all {
            let (kind, view) = pickle.tensor(at)?;
            let data = match made.get(&(kind, view.clone())) {
                Some(data) => {
                    room = room.checked_sub(PER_NAME).ok_or_else(|| walk.repeated())?;
                    data.clone()
                }
                None => {
                    let data = elements(&storage, kind, &view, &mut room).map_err(|why| {
                        let name = named.iter().find(|n| n.1 == at).map_or("", |n| &n.0);
                        format_error(path, format!("tensor `{}`: {why}", cut(name)))
                    })?;
                    let data = Arc::new(data);
                    made.insert((kind, view), data.clone());
                    data
                }
            };
            tensors.insert(at, data);
        }
    }
    Ok(named.into_iter().map(|(name, at)| (name, tensors[&at].clone())).collect())
}

/// The entries of a zip archive, all in one folder.
struct Archive<'a> {
    path: &'a Path,
    zip: ZipArchive<BufReader<File>>,
    folder: String,
    /// Bytes that may still be read. Entries of a damaged archive may share bytes.
    left: u64,
}

impl<'a> Archive<'a> {
    fn new(path: &'a Path, file: BufReader<File>, len: u64) -> Result<Self, DataError> {
        let zip = open_zip(path, file)?;
        let mut folder = None;
        for name in zip.file_names() {
            let name = name.map_err(|e| zip_error(path, e))?;
            match name.strip_suffix("data.pkl") {
                Some(start) if start.is_empty() || start.ends_with('/') => {
                    folder = Some(start.to_owned())
                }
                _ => {}
            }
        }
        let folder = folder.ok_or_else(|| {
            format_error(
                path,
                "expected a file that `torch.save` wrote, found an archive without `data.pkl`",
            )
        })?;
        Ok(Self { path, zip, folder, left: len })
    }
    fn has(&self, name: &str) -> bool {
        self.zip.index_for_name_raw(format!("{}{name}", self.folder).as_bytes()).is_some()
    }
    /// Reads an entry of at most `limit` bytes.
    fn read(&mut self, name: &str, limit: u64) -> Result<Vec<u8>, DataError> {
        let wrong =
            |message: String| format_error(self.path, format!("entry `{}`: {message}", cut(name)));
        let entry = self
            .zip
            .by_name(&format!("{}{name}", self.folder))
            .map_err(|e| wrong(e.to_string()))?;
        if entry.compression() != CompressionMethod::Stored {
            return Err(wrong(
                "expected bytes as `torch.save` writes them, found compressed ones".into(),
            ));
        }
        let size = entry.size();
        if size > limit.min(self.left) {
            return Err(wrong(format!(
                "expected at most {} bytes, found {size}",
                limit.min(self.left)
            )));
        }
        self.left -= size;
        let mut bytes = vec![];
        reserve(self.path, size, &mut bytes)?;
        // One byte more than the size, since the checksum is compared at the end of the entry.
        let read = entry.take(size.saturating_add(1)).read_to_end(&mut bytes);
        match read {
            Ok(n) if n as u64 == size => Ok(bytes),
            Ok(n) => Err(wrong(format!("expected {size} bytes, found {n}"))),
            Err(e) => Err(wrong(e.to_string())),
        }
    }
}

/// A walk through containers. A container may be an item of many others.
struct Walk<'a> {
    path: &'a Path,
    pickle: &'a Pickle<'a>,
    /// Values that may still be visited. Each takes a byte of the pickle, unless containers are repeated.
    left: u64,
    /// Memory that names may still take.
    room: u64,
    found: Vec<(String, u32)>,
}

impl Walk<'_> {
    fn visit(&mut self, id: Id, name: &str, depth: usize) -> Result<(), DataError> {
        if depth > MOST_DEEP {
            return Err(format_error(
                self.path,
                format!("expected containers up to {MOST_DEEP} deep, found deeper ones"),
            ));
        }
        let pickle = self.pickle;
        if let Value::Tensor(at) = pickle.get(id) {
            self.take(PER_NAME as usize + name.len())?;
            self.found.push((name.to_owned(), at));
            return Ok(());
        }
        if let Some(entries) = pickle.dict(id) {
            for &(key, value) in entries {
                if self.holds(value)? {
                    let key = match pickle.get(key) {
                        Value::Tuple(_) if pickle.items(key).len() <= MOST_PARTS => {
                            let parts: Result<Vec<_>, _> =
                                pickle.items(key).iter().map(|&part| self.key(part)).collect();
                            parts?.join(":")
                        }
                        _ => self.key(key)?,
                    };
                    self.child(name, &key, value, depth)?;
                }
            }
            return Ok(());
        }
        for (i, &item) in pickle.items(id).iter().enumerate() {
            if self.holds(item)? {
                self.child(name, &i.to_string(), item, depth)?;
            }
        }
        Ok(())
    }
    /// A key of a dictionary, or a part of one that is a tuple.
    fn key(&self, key: Id) -> Result<String, DataError> {
        match self.pickle.get(key) {
            Value::Int(i) => Ok(i.to_string()),
            _ => self.pickle.text(key).map(str::to_owned).ok_or_else(|| {
                self.pickle.wrong("a text, a number or a tuple of these as key", key)
            }),
        }
    }
    fn child(&mut self, name: &str, key: &str, value: Id, depth: usize) -> Result<(), DataError> {
        self.take(name.len() + key.len())?;
        let name = if depth == 0 { key.to_owned() } else { format!("{name}.{key}") };
        self.visit(value, &name, depth + 1)
    }
    fn take(&mut self, memory: usize) -> Result<(), DataError> {
        self.room = self.room.checked_sub(memory as u64).ok_or_else(|| self.repeated())?;
        Ok(())
    }
    /// Whether a value is a tensor or may contain one.
    fn holds(&mut self, value: Id) -> Result<bool, DataError> {
        self.left = self.left.checked_sub(1).ok_or_else(|| self.repeated())?;
        Ok(matches!(
            self.pickle.get(value),
            Value::Tensor(_) | Value::Dict(_) | Value::List(_) | Value::Tuple(_)
        ))
    }
    fn repeated(&self) -> DataError {
        format_error(
            self.path,
            "expected each tensor and container once, found some many times; save the state dict alone",
        )
    }
}

/// Copies the elements of a view in row-major order.
fn elements(
    storage: &[u8],
    kind: StorageType,
    view: &View,
    room: &mut u64,
) -> Result<TensorData, String> {
    let (dtype, width) = (kind.dtype(), kind.dtype().size());
    let (numel, View { offset, shape, strides }) = (storage.len() / width, view);
    let count = shape.iter().try_fold(1usize, |n, &len| n.checked_mul(len));
    let count = count.filter(|&n| n <= numel).ok_or_else(|| {
        format!("expected at most the {numel} elements of its storage, found shape {shape:?}; save `tensor.contiguous()`")
    })?;
    let last = shape.iter().zip(strides).try_fold(*offset, |at, (&len, &stride)| {
        let step = (len.saturating_sub(1) as u64).checked_mul(stride as u64)?;
        at.checked_add(step)
    });
    if count > 0 && last.is_none_or(|last| last >= numel as u64) {
        return Err(format!(
            "expected elements inside a storage of {numel}, found shape {shape:?}, strides {strides:?} from {offset}"
        ));
    }
    *room = room.checked_sub((count * width) as u64 + PER_TENSOR).ok_or(
        "expected tensors that hardly overlap in a storage, found others; save `tensor.clone()`",
    )?;
    let mut bytes = Vec::with_capacity(count * width);
    if count > 0 {
        let offset = *offset as usize;
        if contiguous(shape, strides) {
            bytes.extend_from_slice(&storage[offset * width..(offset + count) * width]);
        } else {
            let mut index = vec![0; shape.len()];
            for _ in 0..count {
                let at =
                    offset + index.iter().zip(strides).map(|(i, stride)| i * stride).sum::<usize>();
                bytes.extend_from_slice(&storage[at * width..(at + 1) * width]);
                for (i, &len) in index.iter_mut().zip(shape).rev() {
                    *i += 1;
                    if *i < len {
                        break;
                    }
                    *i = 0;
                }
            }
        }
    }
    if kind == StorageType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Ok(TensorData::from_bytes_vec(bytes, shape.clone(), dtype))
}

/// Whether a view is contiguous in row-major order.
fn contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(&len, &stride)| {
        let fits = len == 1 || stride == expected;
        expected *= len;
        fits
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const CHECKPOINT: &[u8] =
        include_bytes!("../../../models/tests/layers/pytorch/files/checkpoint.pt");

    /// Writes the entries of a file of PyTorch, changed, into another file and reads it.
    fn changed(
        change: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>,
        method: CompressionMethod,
    ) -> Result<Vec<NamedTensor>, DataError> {
        let mut zip = ZipArchive::new(std::io::Cursor::new(CHECKPOINT)).unwrap();
        let mut out = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
        for i in 0..zip.len() {
            let mut entry = zip.by_index(i).unwrap();
            let (name, mut bytes) = (entry.name().unwrap().into_owned(), vec![]);
            entry.read_to_end(&mut bytes).unwrap();
            if let Some(bytes) = change(&name, bytes) {
                out.start_file(
                    name,
                    zip::write::SimpleFileOptions::default().compression_method(method),
                )
                .unwrap();
                out.write_all(&bytes).unwrap();
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pt");
        std::fs::write(&path, out.finish().unwrap().into_inner()).unwrap();
        read_torch(&path)
    }

    #[test]
    fn tensors_that_are_one_share_their_data() {
        let all = changed(|_, bytes| Some(bytes), CompressionMethod::Stored).unwrap();
        let of = |name: &str| all.iter().find(|t| t.0 == name).unwrap().1.clone();
        assert!(Arc::ptr_eq(&of("views.all"), &of("views.again")));
        assert!(Arc::ptr_eq(&of("views.all"), &of("optimizer.state.0.exp_avg")));
        assert!(!Arc::ptr_eq(&of("views.all"), &of("views.turned")));
    }

    fn stored(name: &str) -> Result<Vec<NamedTensor>, DataError> {
        read_torch(Path::new("tests/data").join(name))
    }

    fn names(name: &str) -> Vec<String> {
        stored(name).unwrap().into_iter().map(|t| t.0).collect()
    }

    #[test]
    fn files_of_pytorch_before_1_6() {
        let path = Path::new("tests/data/legacy.pt");
        let all = read_torch(path).unwrap();
        let of = |name: &str| all.iter().find(|t| t.0 == name).unwrap().1.clone();
        assert_eq!(names("legacy.pt"), ["model.weight", "model.bias", "again", "ids"]);
        assert_eq!(of("model.weight").shape().as_slice(), [2, 3]);
        assert_eq!(of("model.weight").as_slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(of("model.bias").as_slice::<f32>().unwrap(), [0.5, -1.0]);
        assert_eq!(of("ids").as_slice::<i64>().unwrap(), [7, -1]);
        assert!(Arc::ptr_eq(&of("model.weight"), &of("again")));
        // Truncated at any byte, it is an error of a pickle or of a storage.
        let (whole, tmp) = (std::fs::read(path).unwrap(), tempfile::tempdir().unwrap());
        for len in 1..whole.len() {
            let path = tmp.path().join("cut.pt");
            std::fs::write(&path, &whole[..len]).unwrap();
            let e = read_torch(&path).unwrap_err();
            assert!(matches!(e, DataError::Format { .. }), "{len}: {e}");
        }
        let at = whole.windows(13).position(|w| w == b"little_endian").unwrap();
        let mut big = whole;
        let truth = at + big[at..].iter().position(|&b| b == 0x88).unwrap();
        big[truth] = 0x89;
        let path = tmp.path().join("big.pt");
        std::fs::write(&path, big).unwrap();
        let e = read_torch(&path).unwrap_err().to_string();
        assert!(e.contains("expected little endian numbers, found a file of a big endian"), "{e}");
    }

    #[test]
    fn values_other_than_tensors_are_left_out() {
        let expected = ["counts.seen.0", "model.weight", "model.bias", "tensor"];
        assert_eq!(names("extras.pt"), expected);
    }

    #[test]
    fn dictionaries_and_objects_of_pytorch_geometric() {
        let expected = ["0.paper.x", "0.paper:cites:paper.edge_index", "1.x"];
        assert_eq!(names("pyg.pt"), expected);
        let e = stored("pyg-object.pt").unwrap_err().to_string();
        assert!(
            e.contains("found an object of PyTorch Geometric")
                && e.contains("save `data.to_dict()`"),
            "{e}"
        );
    }

    #[test]
    fn errors_for_other_files_have_a_remedy() {
        let tmp = tempfile::tempdir().unwrap();
        let refused = |bytes: &[u8], part: &str| {
            let path = tmp.path().join("a.bin");
            std::fs::write(&path, bytes).unwrap();
            let e = read_torch(&path).unwrap_err();
            assert!(matches!(e, DataError::Format { .. }) && e.to_string().contains(part), "{e}");
        };
        // The head of a file of `dgl.save_graphs`: magic, version 2, kind.
        let head = [0x3f, 0xa1, 0xb4, 0x46, 0xf0, 0x4f, 0x2e, 0xdd, 2, 0, 0, 0, 0, 0, 0, 0, 2];
        refused(&head, "found graphs of DGL (`dgl.save_graphs`); load them in Python");
        refused(b"\x80\x02N.", "found another pickle");
        let tar = [&[0; 257][..], b"ustar\x0000", &[0; 300]].concat();
        refused(
            &tar,
            "found a tar archive, the format of PyTorch before 0.1.10; load it in PyTorch by",
        );
    }

    /// The new content of an entry; `None`: it is left out.
    type Change<'a> = &'a dyn Fn(&str, Vec<u8>) -> Option<Vec<u8>>;

    #[test]
    fn invalid_archives_are_errors() {
        let refused = |change: Change, method, part: &str| {
            let e = changed(change, method).unwrap_err();
            assert!(
                matches!(e, DataError::Format { .. }) && e.to_string().contains(part),
                "expected {part:?} in {e}"
            );
        };
        let (same, stored) = (|_: &str, bytes: Vec<u8>| Some(bytes), CompressionMethod::Stored);
        refused(
            &same,
            CompressionMethod::Deflated,
            "expected bytes as `torch.save` writes them, found compressed ones",
        );
        let without = |end: &'static str| {
            move |name: &str, bytes: Vec<u8>| (!name.ends_with(end)).then_some(bytes)
        };
        refused(&without("data.pkl"), stored, "found an archive without `data.pkl`");
        refused(&without("data/2"), stored, "entry `data/2`");
        let with = |end: &'static str, new: &'static [u8]| {
            move |name: &str, bytes: Vec<u8>| {
                Some(if name.ends_with(end) { new.to_vec() } else { bytes })
            }
        };
        refused(&with("byteorder", b"big"), stored, "found byte order `big`");
        refused(
            &with("data/2", &[0; 44]),
            stored,
            "tensor `kinds.f64`: expected at most the 5 elements of its storage",
        );
        refused(
            &with("data.pkl", b"\x80\x02cos\nsystem\n."),
            stored,
            "found `os.system`, which is not run",
        );
        refused(
            &with("data.pkl", b"\x80\x02cnumpy\nfromfile\n."),
            stored,
            "found `numpy.fromfile`, which is not run",
        );
        refused(&with("data.pkl", b"\x80\x02NQ."), stored, "expected the name of a storage");
    }
}
