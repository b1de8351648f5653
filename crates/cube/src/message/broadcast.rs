//! Maps the columns of a message to the entries of an operand row (NumPy broadcasting).

use burn_gnn_plan::row_offsets;

/// The entry of an operand row that column `j` of a message reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Entry `j`.
    Same,
    /// Entry `j / times`: one entry per row, or per head.
    Repeat(usize),
    /// Entry `table[j]`.
    Table(Vec<u32>),
}

/// The broadcasting of an operand row to a message row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    /// Entries of the operand row.
    pub(crate) len: usize,
    pub(crate) columns: Columns,
}

impl Map {
    /// An operand row with the shape of a message row.
    pub(crate) fn same(width: usize) -> Self {
        Self { len: width, columns: Columns::Same }
    }
    /// An operand row whose entries are each broadcast to `times` adjacent columns.
    pub(crate) fn repeat(len: usize, times: usize) -> Self {
        Self { len, columns: if times == 1 { Columns::Same } else { Columns::Repeat(times) } }
    }
    /// `own` and `out` are feature shapes, without the axis of rows; `own` broadcasts to `out`.
    pub(crate) fn new(own: &[usize], out: &[usize]) -> Self {
        let len = own.iter().product();
        let mut padded = vec![1; out.len() - own.len()];
        padded.extend_from_slice(own);
        let same = padded.iter().zip(out).take_while(|(p, o)| p == o).count();
        let columns = if same == out.len() {
            Columns::Same
        } else if padded[same..].iter().all(|&p| p == 1) {
            match out[same..].iter().product() {
                // Axes of size 1, or no columns at all.
                0 | 1 => Columns::Same,
                times => Columns::Repeat(times),
            }
        } else {
            Columns::Table(row_offsets(&padded, out))
        };
        Self { len, columns }
    }
    /// The entry of each column, if that needs a table; otherwise empty.
    pub(crate) fn table(&self) -> &[u32] {
        match &self.columns {
            Columns::Table(table) => table,
            Columns::Same | Columns::Repeat(_) => &[],
        }
    }
    /// The inverse map, for sums over broadcast axes: all columns, sorted by the entry that they read.
    pub(crate) fn inverse(&self) -> Vec<u32> {
        match &self.columns {
            Columns::Same => (0..self.len as u32).collect(),
            Columns::Repeat(times) => (0..(self.len * times) as u32).collect(),
            Columns::Table(table) => {
                let mut columns: Vec<u32> = (0..table.len() as u32).collect();
                columns.sort_by_key(|&j| table[j as usize]);
                columns
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_columns() {
        let of = |own: &[usize], out: &[usize]| Map::new(own, out);
        assert_eq!(of(&[4, 8], &[4, 8]), Map { len: 32, columns: Columns::Same });
        assert_eq!(of(&[4, 1], &[4, 8]), Map { len: 4, columns: Columns::Repeat(8) });
        assert_eq!(of(&[], &[4, 8]), Map { len: 1, columns: Columns::Repeat(32) });
        assert_eq!(
            of(&[3], &[2, 3]),
            Map { len: 3, columns: Columns::Table(vec![0, 1, 2, 0, 1, 2]) }
        );
        assert_eq!(
            of(&[2, 1, 2], &[2, 2, 2]).columns,
            Columns::Table(vec![0, 1, 0, 1, 2, 3, 2, 3])
        );
        assert_eq!(of(&[1], &[0]), Map { len: 1, columns: Columns::Same });
    }

    #[test]
    fn inverses_group_columns_by_entry() {
        assert_eq!(Map::new(&[3], &[2, 3]).inverse(), [0, 3, 1, 4, 2, 5]);
        assert_eq!(Map::new(&[2, 1, 2], &[2, 2, 2]).inverse(), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(Map::new(&[2, 1], &[2, 2]).inverse(), [0, 1, 2, 3]);
    }
}
