//! Groups rows into consecutive segments, or by type.

use std::sync::Arc;

use burn_gnn_structure::{Attached, Derived, Relation};

use crate::error::{PlanError, accept, check_below, check_types};
use crate::permutation::Permutation;
use crate::relational::TypeId;
use crate::relational::by_type;

/// Consecutive rows in segments of any length, including 0. A clone costs one reference count.
///
/// ```
/// use burn_gnn_plan::Segments;
/// let segments = Segments::from_lengths(&[2, 0, 3]);
/// assert_eq!(segments, Segments::from_offsets(&[0, 2, 2, 5]));
/// assert_eq!((segments.len(), segments.num_rows(), segments.range(2)), (3, 5, 2..5));
/// ```
#[derive(Clone)]
pub struct Segments(Arc<Inner>);

struct Inner {
    offsets: Vec<u32>,
    /// A relation with one edge per row, whose destination is the segment of the row.
    relation: Derived<Relation>,
    attached: Attached,
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segments({} of {} rows)", self.len(), self.num_rows())
    }
}

impl PartialEq for Segments {
    fn eq(&self, o: &Self) -> bool {
        self.offsets() == o.offsets()
    }
}

impl Eq for Segments {}

const OP: &str = "segments";

/// Largest number of rows; `u32::MAX` is reserved for "no row".
const LIMIT: usize = u32::MAX as usize - 1;

fn wrong(what: String) -> PlanError {
    PlanError::Segments { op: OP, what }
}

impl Segments {
    /// From the number of rows of each segment.
    ///
    /// # Panics
    /// With the text of the error that [`try_from_lengths`](Self::try_from_lengths) returns.
    #[track_caller]
    pub fn from_lengths(lengths: &[usize]) -> Self {
        accept(Self::try_from_lengths(lengths))
    }

    /// [`from_lengths`](Self::from_lengths) that returns an error instead of panicking.
    ///
    /// # Errors
    /// More than `u32::MAX - 1` rows together.
    pub fn try_from_lengths(lengths: &[usize]) -> Result<Self, PlanError> {
        let mut at = 0usize;
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        offsets.push(0);
        for (i, &n) in lengths.iter().enumerate() {
            at = at.checked_add(n).filter(|&at| at <= LIMIT).ok_or_else(|| {
                wrong(format!("lengths[0..={i}] must sum to at most {LIMIT} rows, got {at} before lengths[{i}] = {n}; use several calls"))
            })?;
            offsets.push(at as u32);
        }
        Ok(Self::of(offsets))
    }

    /// From the first row of each segment, followed by the number of rows.
    ///
    /// # Panics
    /// With the text of the error that [`try_from_offsets`](Self::try_from_offsets) returns.
    #[track_caller]
    pub fn from_offsets(offsets: &[usize]) -> Self {
        accept(Self::try_from_offsets(offsets))
    }

    /// [`from_offsets`](Self::from_offsets) that returns an error instead of panicking.
    ///
    /// # Errors
    /// No offsets; a first offset that is not 0; an offset below its predecessor; more than `u32::MAX - 1` rows.
    pub fn try_from_offsets(offsets: &[usize]) -> Result<Self, PlanError> {
        match offsets.first() {
            None => return Err(wrong("offsets must hold at least one number, the 0 at the beginning, got none; give `[0]`".into())),
            Some(0) => (),
            Some(first) => {
                return Err(wrong(format!(
                    "offsets[0] must be 0, got {first}; compute offsets as the cumulative sum of the lengths, from 0"
                )));
            }
        }
        if let Some(i) = offsets.windows(2).position(|w| w[0] > w[1]) {
            let (before, found) = (offsets[i], offsets[i + 1]);
            let at = i + 1;
            return Err(wrong(format!(
                "offsets[{at}] must be at least {before} (offsets never decrease), got {found}; \
                 compute offsets as the cumulative sum of the lengths, from 0"
            )));
        }
        match offsets.iter().position(|&o| o > LIMIT) {
            None => Ok(Self::of(offsets.iter().map(|&o| o as u32).collect())),
            Some(i) => Err(wrong(format!(
                "offsets[{i}] must be at most {LIMIT}, got {}; use several calls",
                offsets[i]
            ))),
        }
    }

    fn of(offsets: Vec<u32>) -> Self {
        Self(Arc::new(Inner { offsets, relation: Derived::new(), attached: Attached::default() }))
    }

    /// Data that devices cache for these offsets.
    #[doc(hidden)]
    pub fn attached(&self) -> &Attached {
        &self.0.attached
    }
    /// Number of segments.
    pub fn len(&self) -> usize {
        self.0.offsets.len() - 1
    }
    /// Whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Rows of all segments together.
    pub fn num_rows(&self) -> usize {
        self.0.offsets[self.len()] as usize
    }
    /// First row of each segment, followed by the number of rows.
    pub fn offsets(&self) -> &[u32] {
        &self.0.offsets
    }
    /// Rows of segment `i`.
    ///
    /// # Panics
    /// If there is no such segment.
    #[inline(always)]
    pub fn range(&self, i: usize) -> std::ops::Range<usize> {
        self.0.offsets[i] as usize..self.0.offsets[i + 1] as usize
    }
    /// The segment of each row.
    #[doc(hidden)]
    pub fn by_row(&self) -> Vec<u32> {
        (0..self.len()).flat_map(|i| std::iter::repeat_n(i as u32, self.range(i).len())).collect()
    }
    /// A relation with one edge per row, from a single source to the segment of the row. Edges are sorted by
    /// destination, so no permutation is stored.
    ///
    /// # Errors
    /// More segments than a relation can have nodes.
    #[doc(hidden)]
    pub fn relation(&self) -> Result<&Relation, PlanError> {
        self.0.relation.try_get_or_compute(|| {
            let ids = self.by_row();
            Relation::from_coo(1, self.len(), vec![0; ids.len()], ids)
                .map_err(|e| wrong(e.to_string()))
        })
    }
}

/// Rows sorted by type once for any number of calls of `gather_mm`. A clone costs one reference count.
///
/// ```
/// use burn_gnn_plan::TypeIndex;
/// let types = TypeIndex::new(&[2u8, 0, 2], 3);
/// assert_eq!((types.rows_of(0), types.rows_of(1), types.rows_of(2)), (&[1u32][..], &[][..], &[0u32, 2][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeIndex {
    segments: Segments,
    rows: Permutation,
}

impl TypeIndex {
    /// `types[i]` is the type of row `i`.
    ///
    /// # Panics
    /// With the text of the error that [`try_new`](Self::try_new) returns.
    #[track_caller]
    pub fn new<I: TypeId>(types: &[I], num_types: usize) -> Self {
        accept(Self::try_new(types, num_types))
    }

    /// [`new`](Self::new) that returns an error instead of panicking.
    ///
    /// # Errors
    /// A type that is not below `num_types`, or more than `u32::MAX - 1` types or rows.
    pub fn try_new<I: TypeId>(types: &[I], num_types: usize) -> Result<Self, PlanError> {
        const OP: &str = "type_index";
        check_types(OP, "num_types", num_types)?;
        check_below(OP, "types", "types", num_types, types)?;
        let mut lengths = vec![0usize; num_types];
        types.iter().for_each(|&t| lengths[t.into() as usize] += 1);
        let segments = Segments::try_from_lengths(&lengths)?;
        let rows = Permutation::new(by_type(types, segments.offsets().to_vec()));
        Ok(Self { segments, rows })
    }

    /// Number of types.
    pub fn num_types(&self) -> usize {
        self.segments.len()
    }
    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }
    /// The rows of one type, ascending.
    ///
    /// # Panics
    /// If there is no such type.
    pub fn rows_of(&self, ty: usize) -> &[u32] {
        &self.rows[self.segments.range(ty)]
    }
    /// Segments of [`rows`](Self::rows), one per type.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }
    /// Row numbers sorted by type, ascending inside a type.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
    /// [`rows`](Self::rows), as a permutation.
    #[doc(hidden)]
    pub fn permutation(&self) -> &Permutation {
        &self.rows
    }
}
