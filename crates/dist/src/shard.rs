//! Saves and loads the rows of one rank.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::element::DistElement;
use crate::error::DistError;

/// Data with rows on every rank that can be saved in a [`Checkpoint`](crate::Checkpoint).
pub trait Shard {
    /// Unique name, the same on all ranks.
    fn name(&self) -> &str;
    /// Writes the rows of this rank.
    fn save(&self, out: &mut ShardWriter);
    /// Reads the rows of this rank.
    ///
    /// # Errors
    /// The file does not contain the requested lists.
    fn load(&self, from: &ShardReader<'_>) -> Result<(), DistError>;
}

/// Writes lists of numbers to a file.
#[derive(Debug, Default)]
pub struct ShardWriter {
    prefix: String,
    lists: BTreeMap<String, (Dtype, usize, Vec<u8>)>,
}

impl ShardWriter {
    /// Adds a list.
    pub fn put<E: DistElement>(&mut self, name: &str, values: &[E]) {
        let bytes = bytemuck::cast_slice(values).to_vec();
        self.lists.insert(format!("{}/{name}", self.prefix), (E::DTYPE, values.len(), bytes));
    }
    /// Serialises all shards.
    pub(crate) fn of(path: &Path, shards: &[&dyn Shard]) -> Result<Vec<u8>, DistError> {
        let (mut out, mut names) = (Self::default(), BTreeSet::new());
        for shard in shards {
            if !names.insert(shard.name().to_owned()) {
                let expected = "distinct names".into();
                return Err(DistError::Config {
                    arg: "shards",
                    expected,
                    found: format!("`{}` twice", shard.name()),
                });
            }
            shard.name().clone_into(&mut out.prefix);
            shard.save(&mut out);
        }
        out.serialize(path)
    }
    /// Serialises named byte strings.
    pub(crate) fn bytes(
        path: &Path,
        all: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Vec<u8>, DistError> {
        let lists = all
            .iter()
            .map(|(name, bytes)| (name.clone(), (Dtype::U8, bytes.len(), bytes.clone())))
            .collect();
        Self { prefix: String::new(), lists }.serialize(path)
    }
    fn serialize(&self, path: &Path) -> Result<Vec<u8>, DistError> {
        let wrong = |e: safetensors::SafeTensorError| {
            DistError::format(path, format!("cannot be written: {e}"))
        };
        let mut views = Vec::with_capacity(self.lists.len());
        for (name, (dtype, len, bytes)) in &self.lists {
            views.push((name.as_str(), TensorView::new(*dtype, vec![*len], bytes).map_err(wrong)?));
        }
        safetensors::serialize(views, None).map_err(wrong)
    }
}

/// The lists of one shard in a file.
#[derive(Debug)]
pub struct ShardReader<'a> {
    path: &'a Path,
    prefix: String,
    tensors: SafeTensors<'a>,
}

impl<'a> ShardReader<'a> {
    pub(crate) fn new(path: &'a Path, bytes: &'a [u8], name: &str) -> Result<Self, DistError> {
        Ok(Self { path, prefix: name.to_owned(), tensors: parse(path, bytes)? })
    }
    /// Reads a list of `len` numbers.
    ///
    /// # Errors
    /// There is no list of this name, or its type or length differs.
    pub fn take<E: DistElement>(&self, name: &str, len: usize) -> Result<Vec<E>, DistError> {
        let name = format!("{}/{name}", self.prefix);
        let bad = |message: String| Err(DistError::format(self.path, message));
        let Ok(view) = self.tensors.tensor(&name) else {
            return bad(format!("no tensor `{name}`; there are {:?}", self.tensors.names()));
        };
        if view.dtype() != E::DTYPE || view.shape() != [len] {
            return bad(format!(
                "`{name}`: expected {len} numbers of {:?}, got {:?} of {:?}",
                E::DTYPE,
                view.shape(),
                view.dtype()
            ));
        }
        Ok(bytemuck::pod_collect_to_vec(view.data()))
    }
    /// Reads all lists of a file as bytes.
    pub(crate) fn all_bytes(
        path: &Path,
        bytes: &[u8],
    ) -> Result<BTreeMap<String, Vec<u8>>, DistError> {
        Ok(parse(path, bytes)?
            .iter()
            .map(|(name, view)| (name.to_owned(), view.data().to_vec()))
            .collect())
    }
}

fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>, DistError> {
    SafeTensors::deserialize(bytes)
        .map_err(|e| DistError::format(path, format!("expected a file of a checkpoint: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_writing_name_the_file() {
        let lists = BTreeMap::from([("rows/x".to_owned(), (Dtype::F32, 3, vec![0; 5]))]);
        let e = ShardWriter { prefix: String::new(), lists }
            .serialize(Path::new("kept/step-1/rank0.safetensors"))
            .unwrap_err();
        assert!(
            e.to_string().starts_with("kept/step-1/rank0.safetensors: cannot be written: "),
            "{e}"
        );
    }
}
