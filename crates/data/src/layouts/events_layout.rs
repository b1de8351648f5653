//! Reads the layout `events`: a stream of events, its split by time, and negatives.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::arrays::npy::NpyArray;
use crate::events::event_split::EventSplit;
use crate::events::event_stream::EventStream;
use crate::files::{format_error, ids_below, inside, node_count, read_json, same_count};
use crate::layouts::metadata::{Layout, METADATA, only};

/// Value of `layout` in the description.
const EVENTS: &str = "events";

#[derive(Deserialize)]
struct Metadata {
    name: String,
    num_nodes: u64,
    num_events: u64,
    events: Files,
    splits: BTreeMap<String, SplitEntry>,
}

#[derive(Deserialize)]
struct Files {
    src: String,
    dst: String,
    time: String,
    features: Option<String>,
    types: Option<String>,
}

#[derive(Deserialize)]
struct SplitEntry {
    train: PartEntry,
    val: PartEntry,
    test: PartEntry,
}

#[derive(Deserialize)]
struct PartEntry {
    events: [usize; 2],
    negatives_file: Option<String>,
}

/// A stream of events with a split by time, and a random destination per event of validation and test.
#[derive(Clone, Debug)]
pub struct EventDataset {
    /// Short name.
    pub name: String,
    /// The events.
    pub events: EventStream,
    /// Training, validation and test.
    pub split: EventSplit,
    /// A negative destination per validation event, if the folder has them.
    pub val_negatives: Option<Vec<u32>>,
    /// A negative destination per test event, if the folder has them.
    pub test_negatives: Option<Vec<u32>>,
}

/// Reads a folder of the layout `events`: `metadata.json`, `events/{src,dst,time}.npy`, optionally features `[events, D]`
/// and types, and `negatives_{val,test}.npy`.
///
/// The files are not trusted: counts are compared with the arrays, nodes with their range. Parts of the split must be
/// consecutive and must not separate events of one time.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Format`] for all other deviations: another layout, contradictory counts, unsorted times, several
///   splits.
pub fn load_events(dir: impl AsRef<Path>) -> Result<EventDataset, DataError> {
    let dir = dir.as_ref();
    let json = dir.join(METADATA);
    read(dir, &json).map_err(|e| e.in_file(&json))
}

fn read(dir: &Path, json: &Path) -> Result<EventDataset, DataError> {
    Layout::expect(json, EVENTS, "")?;
    let meta: Metadata = read_json(json)?;
    let (_, split) = only(json, "splits", &meta.splits)?;
    let array = |file: &str| NpyArray::read(&inside(dir, json, file)?);
    let column = |file: &str| -> Result<Vec<i64>, DataError> {
        let array = array(file)?;
        array.expect_shape(&[None])?;
        same_count(&array.path, "number of events", meta.num_events, array.shape[0])?;
        array.into_i64()
    };
    let time = column(&meta.events.time)?;
    let nodes = node_count(json, "node", meta.num_nodes, 16 * time.len() as u64)?;
    let ids =
        |what: &str, file: &str| ids_below(&inside(dir, json, file)?, what, column(file)?, nodes);
    let (src, dst) = (ids("source", &meta.events.src)?, ids("destination", &meta.events.dst)?);
    if let Some(i) = time.windows(2).position(|pair| pair[1] < pair[0]) {
        let why = format!(
            "time of event {}: expected at least {}, the time of the event before it, found {}",
            i + 1,
            time[i],
            time[i + 1]
        );
        return Err(format_error(&inside(dir, json, &meta.events.time)?, why));
    }
    let mut events = EventStream::new(nodes, src, dst, time)?;
    if let Some(file) = &meta.events.features {
        let array = array(file)?;
        array.expect_shape(&[Some(events.len()), None])?;
        let size = array.shape[1];
        events = events.with_features(size, array.into_floats()?)?;
    }
    if let Some(file) = &meta.events.types {
        let types = ids_below(&inside(dir, json, file)?, "type", column(file)?, u32::MAX as usize)?;
        events = events.with_types(types)?;
    }
    let range = |part: &PartEntry| part.events[0]..part.events[1];
    let split = EventSplit::from_ranges(
        &events,
        range(&split.train),
        range(&split.val),
        range(&split.test),
    )
    .map(|ranges| (ranges, split))?;
    let negatives = |part: &PartEntry| -> Result<Option<Vec<u32>>, DataError> {
        let Some(file) = &part.negatives_file else { return Ok(None) };
        let array = array(file)?;
        array.expect_shape(&[None])?;
        let count = range(part).len() as u64;
        same_count(&array.path, "number of negatives", count, array.shape[0])?;
        let path = array.path.clone();
        ids_below(&path, "negative", array.into_i64()?, nodes).map(Some)
    };
    let (val_negatives, test_negatives) = (negatives(&split.1.val)?, negatives(&split.1.test)?);
    tracing::debug!(name = meta.name, nodes, events = events.len(), "events read");
    Ok(EventDataset { name: meta.name, events, split: split.0, val_negatives, test_negatives })
}
