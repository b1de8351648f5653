//! Numbers raw ids (64-bit integers or texts) whose number exceeds memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use burn_gnn_files::internal::open;
use twox_hash::XxHash3_64;

use crate::build::{EdgeChunk, EdgeStream};
use crate::error::{StoreError, format, io};
use crate::section_writer::{SectionWriter, create};
use crate::sections::{Header, Section, SectionFile};

/// Kind of the files, and name of their section.
const KIND: &str = "ids";
const IDS: &str = "ids";
/// Minimal memory of numbering.
const LEAST: u64 = 1 << 20;
/// Edges per look-up.
const CHUNK: usize = 1 << 20;

/// A raw id: an integer, or the [`text_id`] of a text.
pub trait RawId: bytemuck::Pod + Ord + Send + Sync + std::fmt::Debug {}
impl RawId for u64 {}
impl RawId for u128 {}

/// Converts a text to a raw id: two 64-bit hashes (XXH3). Among a billion different texts, the probability of a
/// collision is below 10^-20.
pub fn text_id(text: &str) -> u128 {
    let half = |seed| u128::from(XxHash3_64::oneshot_with_seed(seed, text.as_bytes()));
    half(0) << 64 | half(0x9e37_79b9_7f4a_7c15)
}

/// Numbers of raw ids: a file of the distinct ids in ascending order. The number of an id is its position.
///
/// ```
/// use burn_gnn_store::{CscBuild, NumberedEdges, RawNumbers};
/// # let dir = tempfile::tempdir().unwrap();
/// let raw = [(7_000_000_000_007u64, 5u64), (5, 12)];
/// let ids = raw.iter().flat_map(|&(u, v)| [u, v]).map(Ok);
/// let numbers = RawNumbers::build(dir.path().join("ids"), 1 << 20, ids)?;
/// assert_eq!((numbers.len(), numbers.numbers(&[12, 5])?), (3, vec![1, 0]));
/// let edges = NumberedEdges::new(raw.map(Ok), &numbers, &numbers);
/// CscBuild::new(dir.path().join("csc"), 3, 3).run(edges)?;
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct RawNumbers<K> {
    path: PathBuf,
    ids: Section,
    of: std::marker::PhantomData<K>,
}

impl<K: RawId> RawNumbers<K> {
    /// Sorts the distinct ids of an iterator into the file `path`, in `memory` bytes, at least 1 MiB. Temporary runs
    /// next to the file hold the distinct ids of each chunk and are removed afterwards.
    ///
    /// # Errors
    /// More than `u32::MAX - 1` distinct ids; errors of the iterator; [`StoreError::Memory`]; [`StoreError::Data`].
    ///
    /// # Cost
    /// `O(n log n)`; every run is written and read once.
    pub fn build(
        path: impl AsRef<Path>,
        memory: u64,
        ids: impl IntoIterator<Item = Result<K, StoreError>>,
    ) -> Result<Self, StoreError> {
        let path = path.as_ref();
        if memory < LEAST {
            return Err(StoreError::Memory { what: "numbering", least: LEAST, given: memory });
        }
        let most = (memory / 2) as usize / size_of::<K>();
        let mut runs = Runs { path: path.into(), files: VecDeque::new(), made: 0 };
        let mut run: Vec<K> = vec![];
        for id in ids {
            run.push(id?);
            if run.len() == most {
                // Frequent ids are deduplicated, so a run can take more of the stream.
                distinct(&mut run);
                if run.len() > most / 2 {
                    runs.write(&run)?;
                    run.clear();
                }
            }
        }
        distinct(&mut run);
        runs.write(&run)?;
        drop(run);
        runs.join::<K>(memory)?;
        let count = runs.merge(memory, |_: K| Ok(()))?;
        if count >= u64::from(u32::MAX) {
            return Err(format(
                path,
                format!("expected at most {} different ids, found {count}", u32::MAX - 1),
            ));
        }
        let mut header = Header::new(KIND).with("width", size_of::<K>());
        header.section(IDS, count * size_of::<K>() as u64);
        let mut out = SectionWriter::replace(path, header)?;
        runs.merge(memory, |id: K| out.put(0, bytemuck::bytes_of(&id)))?;
        out.finish(&[])?;
        Self::open(path)
    }

    /// Opens a file that [`build`](Self::build) wrote.
    ///
    /// # Errors
    /// [`StoreError::Data`], also for ids of another width; [`StoreError::Truncated`], [`StoreError::Damaged`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let file = SectionFile::open(path, KIND)?;
        let (width, expected) = (file.header.number(path, "width")?, size_of::<K>() as u64);
        if width != expected {
            return Err(format(path, format!("expected ids of {expected} bytes, found {width}")));
        }
        let ids = file
            .section(IDS)
            .ok_or_else(|| format(path, format!("expected a section `{IDS}`, found none")))?;
        Ok(Self { path: path.into(), ids, of: std::marker::PhantomData })
    }

    /// Number of distinct ids.
    pub fn len(&self) -> usize {
        self.ids.bytes().len() / size_of::<K>()
    }
    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The raw id of a number.
    ///
    /// # Errors
    /// A number out of range; [`StoreError::Damaged`].
    pub fn id(&self, number: u32) -> Result<K, StoreError> {
        burn_gnn_structure::internal::check_ids("number", "the raw ids", &[number], self.len())?;
        self.at(number as usize)
    }
    fn at(&self, position: usize) -> Result<K, StoreError> {
        self.ids.check(position * size_of::<K>())?;
        Ok(self.ids.numbers::<K>()[position])
    }

    /// The number of each raw id.
    ///
    /// # Errors
    /// An unknown id; more than `u32::MAX` ids; [`StoreError::Damaged`].
    ///
    /// # Cost
    /// `O(n log n)`: ids are looked up in ascending order, so the file is read sequentially.
    pub fn numbers(&self, ids: &[K]) -> Result<Vec<u32>, StoreError> {
        if ids.len() as u64 > u64::from(u32::MAX) {
            let why = format!(
                "expected at most {} ids at a time, found {}; look them up in several calls",
                u32::MAX,
                ids.len()
            );
            return Err(format(&self.path, why));
        }
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_unstable_by_key(|&i| ids[i as usize]);
        let (mut numbers, mut from, all) = (vec![0; ids.len()], 0, self.len());
        for i in order {
            let id = ids[i as usize];
            // Galloping search from the last position on.
            let (mut low, mut step) = (from, 1);
            while low + step < all && self.at(low + step)? <= id {
                low += step;
                step *= 2;
            }
            let mut high = all.min(low + step);
            while low + 1 < high {
                let middle = low.midpoint(high);
                if self.at(middle)? <= id { low = middle } else { high = middle }
            }
            if low >= all || self.at(low)? != id {
                return Err(format(
                    &self.path,
                    format!("expected a raw id that was numbered, found {id:?}"),
                ));
            }
            (numbers[i as usize], from) = (low as u32, low);
        }
        Ok(numbers)
    }
}

fn distinct<K: RawId>(ids: &mut Vec<K>) {
    ids.sort_unstable();
    ids.dedup();
}

/// Runs per merge, since a process may have about a thousand open files.
const OPEN: usize = if cfg!(test) { 4 } else { 256 };

/// Temporary sorted runs, which are removed on drop.
struct Runs {
    path: PathBuf,
    /// Files, and the number of ids in each.
    files: VecDeque<(PathBuf, u64)>,
    made: usize,
}

impl Runs {
    fn name(&self, ending: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{ending}"));
        self.path.with_file_name(name)
    }
    /// Creates a run. `put` writes the ids and returns their number.
    fn add(
        &mut self,
        put: impl FnOnce(&Self, &mut BufWriter<File>, &Path) -> Result<u64, StoreError>,
    ) -> Result<(), StoreError> {
        let path = self.name(&format!("run-{:05}", self.made));
        self.made += 1;
        let mut out = BufWriter::with_capacity(1 << 18, create(&path)?);
        // Registered first, so that an incomplete file is removed too.
        self.files.push_back((path.clone(), 0));
        let count = put(self, &mut out, &path)?;
        out.flush().map_err(io(&path))?;
        if let Some(last) = self.files.back_mut() {
            last.1 = count;
        }
        Ok(())
    }
    fn write<K: RawId>(&mut self, ids: &[K]) -> Result<(), StoreError> {
        self.add(|_, out, path| {
            out.write_all(bytemuck::cast_slice(ids)).map_err(io(path))?;
            Ok(ids.len() as u64)
        })
    }
    /// Merges runs until all of them can be open at the same time.
    fn join<K: RawId>(&mut self, memory: u64) -> Result<(), StoreError> {
        while self.files.len() > OPEN {
            self.add(|runs, out, path| {
                runs.merge_first(OPEN, memory, |id: K| {
                    out.write_all(bytemuck::bytes_of(&id)).map_err(io(path))
                })
            })?;
            for (path, _) in self.files.drain(..OPEN) {
                std::fs::remove_file(&path).map_err(io(&path))?;
            }
        }
        Ok(())
    }
    /// Calls `f` with every distinct id in ascending order, and returns their number.
    fn merge<K: RawId>(
        &self,
        memory: u64,
        f: impl FnMut(K) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        self.merge_first(self.files.len(), memory, f)
    }
    /// [`merge`](Self::merge) for the first runs.
    fn merge_first<K: RawId>(
        &self,
        runs: usize,
        memory: u64,
        mut f: impl FnMut(K) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let buffer = (memory as usize / 2 / runs.max(1)).clamp(1 << 12, 1 << 20);
        let mut readers = vec![];
        for (path, left) in self.files.iter().take(runs) {
            readers.push((path, *left, BufReader::with_capacity(buffer, open(path)?.0)));
        }
        let next = |(path, left, reader): &mut (&PathBuf, u64, BufReader<File>)| -> Result<Option<K>, StoreError> {
            if *left == 0 {
                return Ok(None);
            }
            let mut id = K::zeroed();
            reader.read_exact(bytemuck::bytes_of_mut(&mut id)).map_err(io(path))?;
            *left -= 1;
            Ok(Some(id))
        };
        let mut heap = BinaryHeap::new();
        for (i, reader) in readers.iter_mut().enumerate() {
            heap.extend(next(reader)?.map(|id| Reverse((id, i))));
        }
        let (mut last, mut count) = (None, 0);
        while let Some(Reverse((id, i))) = heap.pop() {
            if last != Some(id) {
                f(id)?;
                (last, count) = (Some(id), count + 1);
            }
            heap.extend(next(&mut readers[i])?.map(|id| Reverse((id, i))));
        }
        Ok(count)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        for (path, _) in &self.files {
            // The next numbering of this name overwrites a file that cannot be removed.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A stream of edges that converts raw ids to their numbers, for a build.
#[derive(Debug)]
pub struct NumberedEdges<'a, K, I> {
    edges: I,
    numbers: [&'a RawNumbers<K>; 2],
    ready: std::vec::IntoIter<(u32, u32)>,
}

impl<'a, K: RawId, I: Iterator<Item = Result<(K, K), StoreError>>> NumberedEdges<'a, K, I> {
    /// Converts the edges of an iterator of results. `src` and `dst` number sources and destinations.
    pub fn new(
        edges: impl IntoIterator<IntoIter = I>,
        src: &'a RawNumbers<K>,
        dst: &'a RawNumbers<K>,
    ) -> Self {
        Self { edges: edges.into_iter(), numbers: [src, dst], ready: vec![].into_iter() }
    }
}

impl<K: RawId, I: Iterator<Item = Result<(K, K), StoreError>>> EdgeStream
    for NumberedEdges<'_, K, I>
{
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        if self.ready.len() == 0 {
            let raw: Vec<(K, K)> = self.edges.by_ref().take(CHUNK).collect::<Result<_, _>>()?;
            let [src, dst] =
                [raw.iter().map(|e| e.0).collect::<Vec<_>>(), raw.iter().map(|e| e.1).collect()];
            let (src, dst) = (self.numbers[0].numbers(&src)?, self.numbers[1].numbers(&dst)?);
            self.ready = src.into_iter().zip(dst).collect::<Vec<_>>().into_iter();
        }
        let before = chunk.len();
        for (u, v) in self.ready.by_ref().take(most) {
            chunk.src.push(u);
            chunk.dst.push(v);
        }
        Ok(chunk.len() - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn positions_of_sorted_ids(ids in proptest::collection::vec(prop_oneof![any::<u64>(), 0u64..50], 0..400)) {
            let dir = tempfile::tempdir().unwrap();
            let numbers = RawNumbers::build(dir.path().join("ids"), LEAST, ids.iter().copied().map(Ok)).unwrap();
            let mut sorted = ids.clone();
            distinct(&mut sorted);
            prop_assert_eq!((numbers.len(), numbers.is_empty()), (sorted.len(), sorted.is_empty()));
            let expected: Vec<u32> = ids.iter().map(|id| sorted.binary_search(id).unwrap() as u32).collect();
            prop_assert_eq!(numbers.numbers(&ids).unwrap(), expected);
            for (i, &id) in sorted.iter().enumerate() {
                prop_assert_eq!(numbers.id(i as u32).unwrap(), id);
            }
            if !sorted.contains(&7) {
                prop_assert!(numbers.numbers(&[7]).is_err());
            }
            prop_assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        }
    }

    /// More ids than a run holds, in several runs with common ids.
    #[test]
    fn several_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ids");
        let id = |i: u64| {
            u128::from(i % 300_000).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
        };
        let numbers = RawNumbers::build(&path, LEAST, (0..700_000).map(id).map(Ok)).unwrap();
        assert_eq!(numbers.len(), 300_000);
        let ids: Vec<u128> = (0..1000).map(|i| id(i * 37)).collect();
        let found = numbers.numbers(&ids).unwrap();
        assert!(found.iter().zip(&ids).all(|(&n, &id)| numbers.id(n).unwrap() == id));
        assert!(RawNumbers::<u64>::open(&path).is_err() && RawNumbers::<u128>::open(&path).is_ok());
        assert!(matches!(RawNumbers::build(&path, 10, [Ok(1u64)]), Err(StoreError::Memory { .. })));
        assert_ne!(text_id("a"), text_id("b"));
    }
}
