//! Makes a stream of events from an edge table.

use std::collections::HashMap;

use burn_gnn_files::DataError;
use burn_gnn_graph::{FileId, Ids, NodeIds};

use super::event_stream::EventStream;
use crate::files::setting;
use crate::tables::EdgeTable;

impl EventStream {
    /// The events of an edge table with timestamps ([`Decoder::timestamped`](crate::Decoder::timestamped)), and the ids of
    /// its nodes. Labels become types, float attributes become features.
    ///
    /// Nodes are numbered in the order of their first event, the source before the destination, so that later events do
    /// not change the number of a node. Sources and destinations share one set of ids: give users and items distinct
    /// ids.
    ///
    /// ```
    /// use burn_gnn_data::{Csv, Decoder, EventStream, read_edges};
    /// let dir = tempfile::tempdir().unwrap();
    /// let file = dir.path().join("mail.csv");
    /// std::fs::write(&file, "src_id,dst_id,timestamp\nbo,cy,20\nann,bo,10\n").unwrap();
    /// let csv = Csv::default().with_endpoints("src_id", "dst_id").with_timestamp("timestamp");
    /// let csv = csv.with_text_ids();
    /// let table = read_edges(&*file, &Decoder::new().timestamped().csv(csv))?;
    /// let (mail, people) = EventStream::from_table(&table)?;
    /// assert_eq!((mail.src(), mail.dst(), mail.time()), (&[0, 1][..], &[1, 2][..], &[10, 20][..]));
    /// assert_eq!(people.number("cy"), Some(2));
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// A table without timestamps; ids of different types; a negative label; as [`new`](Self::new).
    ///
    /// # Cost
    /// `O(events log events)`, and a hash table of the nodes.
    pub fn from_table(table: &EdgeTable) -> Result<(Self, NodeIds), DataError> {
        let times = table.columns.timestamps.as_ref().ok_or_else(|| {
            let expected = "a table with timestamps (`Decoder::timestamped`)";
            setting("table", expected, "a table without timestamps")
        })?;
        if table.src.kind() != table.dst.kind() && !table.src.is_empty() {
            let expected = format!("`{}` ids of destinations, as of sources", table.src.kind());
            return Err(setting("table", &expected, table.dst.kind()));
        }
        let mut order: Vec<u32> = (0..times.len() as u32).collect();
        order.sort_by_key(|&row| times[row as usize]);
        let mut numbers: HashMap<FileId<'_>, u32> = HashMap::new();
        let mut ids = match &table.src {
            Ids::Int(_) => Ids::Int(vec![]),
            Ids::Text(_) => Ids::Text(Default::default()),
        };
        let (mut src, mut dst) = (vec![0; times.len()], vec![0; times.len()]);
        for row in order {
            let row = row as usize;
            for (column, to) in [(&table.src, &mut src), (&table.dst, &mut dst)] {
                let (id, next) = (column.get(row), numbers.len() as u32);
                to[row] = *numbers.entry(id).or_insert_with(|| {
                    ids.push(id);
                    next
                });
            }
        }
        let mut events = Self::new(numbers.len(), src, dst, times.clone())?;
        if let Some(labels) = &table.columns.labels {
            let number = |(row, &label): (usize, &i64)| {
                u32::try_from(label).map_err(|_| {
                    let expected = format!("a label from 0 in row {}", row + 1);
                    setting("table", &expected, &label.to_string())
                })
            };
            let types = labels.iter().enumerate().map(number).collect::<Result<_, _>>()?;
            events = events.with_types(types)?;
        }
        let floats = &table.columns.attributes.floats;
        if let Some(size) = floats.len().checked_div(times.len()).filter(|&size| size > 0) {
            events = events.with_features(size, floats.clone())?;
        }
        Ok((events, NodeIds::new(ids)))
    }
}
