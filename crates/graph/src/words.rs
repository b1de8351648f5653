//! Numbers of a relation, in memory or in a mapped file.

use std::ops::Deref;
use std::sync::Arc;

use crate::mapped_file::MappedFile;

/// Ids or offsets; layouts do not know where they are.
pub(crate) enum Words {
    Own(Vec<u32>),
    Mapped(MappedWords),
}

/// Part of a mapped file. Whoever changes the file changes these numbers after they were checked: unsafe code must not
/// rely on them.
#[derive(Clone)]
pub(crate) struct MappedWords {
    map: Arc<MappedFile>,
    /// In bytes.
    start: usize,
    end: usize,
}

impl MappedWords {
    /// The numbers that `part`, a slice of `map`, holds; `None` where it is no slice of it, or not at a multiple of
    /// four bytes.
    pub(crate) fn new(map: &Arc<MappedFile>, part: &[u8]) -> Option<Self> {
        let start = (part.as_ptr() as usize).checked_sub(map.as_ptr() as usize)?;
        let end = start + part.len();
        let fits = map.get(start..end).is_some_and(|bytes| bytemuck::try_cast_slice::<u8, u32>(bytes).is_ok());
        fits.then(|| Self { map: map.clone(), start, end })
    }
}

impl Words {
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped(_))
    }
}

impl From<Vec<u32>> for Words {
    fn from(v: Vec<u32>) -> Self {
        Self::Own(v)
    }
}

impl Deref for Words {
    type Target = [u32];

    #[inline(always)]
    fn deref(&self) -> &[u32] {
        match self {
            Self::Own(v) => v,
            Self::Mapped(m) => bytemuck::cast_slice(&m.map[m.start..m.end]),
        }
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Words {}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
