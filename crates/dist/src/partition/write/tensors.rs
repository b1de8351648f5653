//! Writes safetensors files in chunks, with a checksum.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use burn_gnn_files::internal::tensor_header;
use bytemuck::Pod;
use safetensors::Dtype;

use crate::error::DistError;
use crate::partition::format::checksummed_file::write_summed;
use crate::partition::format::metadata::STAMP;

/// Numbers that are converted and written per call.
const CHUNK: usize = 1 << 15;

type Content<'a> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'a>;

/// A tensor to be written.
pub(crate) struct Entry<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    content: Content<'a>,
}

impl<'a> Entry<'a> {
    /// `content` writes the bytes of the tensor; their number must match dtype and shape.
    pub(crate) fn new(
        name: impl Into<String>,
        dtype: Dtype,
        shape: Vec<usize>,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()> + 'a,
    ) -> Self {
        Self { name: name.into(), dtype, shape, content: Box::new(content) }
    }
    /// A list of numbers.
    pub(crate) fn numbers<T: Pod>(
        name: impl Into<String>,
        dtype: Dtype,
        values: impl Into<Cow<'a, [T]>>,
    ) -> Self {
        let values: Cow<'a, [T]> = values.into();
        Self::new(name, dtype, vec![values.len()], move |w| {
            values.chunks(CHUNK).try_for_each(|some| w.write_all(bytemuck::cast_slice(some)))
        })
    }
    /// A list of `len` numbers. `fill` appends the numbers of a range to an empty buffer.
    pub(crate) fn list<T: Pod>(
        name: &str,
        dtype: Dtype,
        len: usize,
        fill: impl Fn(Range<usize>, &mut Vec<T>) + 'a,
    ) -> Self {
        // Little endian: big-endian machines are not supported.
        Self::new(name, dtype, vec![len], move |w| {
            let mut buffer = Vec::with_capacity(CHUNK.min(len));
            (0..len).step_by(CHUNK).try_for_each(|from| {
                buffer.clear();
                fill(from..(from + CHUNK).min(len), &mut buffer);
                w.write_all(bytemuck::cast_slice(&buffer))
            })
        })
    }
    fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bitsize() / 8
    }
}

/// Writes a safetensors file in chunks and returns its checksum. One chunk is in memory at a time.
pub(crate) fn write_tensors(
    path: &Path,
    stamp: &str,
    mut entries: Vec<Entry<'_>>,
) -> Result<String, DistError> {
    // The order that readers of safetensors expect: wide types first, so that all tensors are aligned.
    entries.sort_by(|a, b| {
        (Reverse(a.dtype.bitsize()), &a.name).cmp(&(Reverse(b.dtype.bitsize()), &b.name))
    });
    let tensors = entries.iter().map(|e| (e.name.as_str(), e.dtype, &e.shape[..]));
    let header = tensor_header(tensors, [(STAMP, stamp)]);
    write_summed(path, |w| {
        w.write_all(&header)?;
        for e in entries {
            let (name, expected, before) = (e.name.clone(), e.bytes() as u64, w.written);
            (e.content)(w)?;
            let written = w.written - before;
            if written != expected {
                return Err(io::Error::other(format!(
                    "`{name}`: expected {expected} bytes, its content has {written}"
                )));
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::format::checksummed_file::{check_sum, pending_path};

    #[test]
    fn safetensors_reads_the_written_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.safetensors");
        let flags: Vec<u8> = vec![1, 0, 1];
        let numbers = 0..100_000i64;
        let entries = vec![
            Entry::list("flags", Dtype::U8, flags.len(), |r, out| out.extend_from_slice(&flags[r])),
            Entry::list("numbers", Dtype::I64, 100_000, |r, out: &mut Vec<i64>| {
                out.extend(r.map(|i| i as i64))
            }),
            Entry::new("x/h", Dtype::F32, vec![0, 5], |_| Ok(())),
        ];
        let sum = write_tensors(&path, "1:ab", entries).unwrap();
        let bytes = std::fs::read(pending_path(&path, &sum)).unwrap();
        check_sum(&path, &bytes, &sum).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(file.tensor("flags").unwrap().data(), [1, 0, 1]);
        assert_eq!(file.tensor("x/h").unwrap().shape(), [0, 5]);
        let read: Vec<i64> = bytemuck::pod_collect_to_vec(file.tensor("numbers").unwrap().data());
        assert!(read.into_iter().eq(numbers));
        let e = check_sum(&path, &bytes[1..], &sum).unwrap_err().to_string();
        assert!(e.contains(&format!("checksum {sum}")), "{e}");
        // Content of a wrong length is an error and leaves no file.
        let wrong = Entry::new("x", Dtype::F32, vec![2], |w| w.write_all(&[0; 7]));
        let e = write_tensors(&dir.path().join("u"), "1:ab", vec![wrong]).unwrap_err().to_string();
        assert!(e.contains("`x`: expected 8 bytes, its content has 7"), "{e}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
