//! NumPy broadcasting of feature rows, resolved before any loop runs.

/// How the columns of an output row find their operand entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Column `j` reads entry `j`.
    Same,
    /// Every column reads the only entry.
    One,
    /// Column `j` reads entry `table[j]`.
    Table(Vec<u32>),
}

/// One operand's feature row against the output's.
#[derive(Clone, Debug)]
pub(crate) struct RowMap {
    /// Feature shape as given.
    pub(crate) own: Vec<usize>,
    /// Feature shape with leading ones up to the rank of the output's.
    pub(crate) padded: Vec<usize>,
    /// Entries of a row.
    pub(crate) len: usize,
    pub(crate) columns: Columns,
}

impl RowMap {
    fn new(own: &[usize], out: &[usize]) -> Self {
        let mut padded = vec![1; out.len() - own.len()];
        padded.extend_from_slice(own);
        let len = own.iter().product();
        let columns = if padded == out {
            Columns::Same
        } else if len == 1 {
            Columns::One
        } else {
            Columns::Table(table(&padded, out))
        };
        Self { own: own.to_vec(), padded, len, columns }
    }
    /// The offsets as a table whatever the kind, for the general path.
    pub(crate) fn table(&self, out: &[usize]) -> Vec<u32> {
        match &self.columns {
            Columns::Table(t) => t.clone(),
            _ => table(&self.padded, out),
        }
    }
}

/// Offset in a row of shape `padded` for each entry of a row of shape `out` (row-major).
fn table(padded: &[usize], out: &[usize]) -> Vec<u32> {
    let mut offsets = vec![0u32];
    let mut stride = padded.iter().product::<usize>();
    for (&p, &o) in padded.iter().zip(out) {
        stride = stride.checked_div(p).unwrap_or(0);
        let step = if p == 1 { 0 } else { stride as u32 };
        offsets = offsets.iter().flat_map(|&base| (0..o as u32).map(move |i| base + i * step)).collect();
    }
    offsets
}

/// Feature shape of the result and the two maps; `None` if the shapes do not broadcast.
pub(crate) fn broadcast(lhs: &[usize], rhs: &[usize]) -> Option<(Vec<usize>, RowMap, RowMap)> {
    let rank = lhs.len().max(rhs.len());
    let axis = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    let out = (0..rank)
        .map(|i| match (axis(lhs, i), axis(rhs, i)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect::<Option<Vec<_>>>()?;
    let (l, r) = (RowMap::new(lhs, &out), RowMap::new(rhs, &out));
    Some((out, l, r))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numpy_rules() {
        let (out, l, r) = broadcast(&[4, 1], &[3]).unwrap();
        assert_eq!(out, [4, 3]);
        assert_eq!(l.columns, Columns::Table(vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]));
        assert_eq!(r.columns, Columns::Table(vec![0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]));
        assert_eq!(r.padded, [1, 3]);
        let (out, l, r) = broadcast(&[], &[2, 3]).unwrap();
        assert_eq!((out, l.columns, r.columns), (vec![2, 3], Columns::One, Columns::Same));
        assert!(broadcast(&[2], &[3]).is_none());
        let (out, l, _) = broadcast(&[1], &[0]).unwrap();
        assert_eq!((out, l.table(&[0])), (vec![0], vec![]));
        assert_eq!(broadcast(&[], &[]).unwrap().0, Vec::<usize>::new());
    }
}
