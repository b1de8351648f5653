//! Tests of event streams: order, splits, windows, graphs, and the layout `events`.

use burn_gnn_sampling::{SampleKey, Strategy};

use super::event_split::EventSplit;
use super::event_stream::EventStream;
use crate::layouts::events_layout::load_events;
use crate::tables::{AttrType, Csv, Decoder, read_edges};

fn stream(time: Vec<i64>) -> EventStream {
    let n = time.len();
    let src = (0..n as u32).map(|i| i % 3).collect();
    EventStream::new(5, src, vec![4; n], time).unwrap()
}

#[test]
fn events_of_one_time_keep_their_order() {
    let events = EventStream::new(4, vec![0, 1, 2, 3], vec![1; 4], vec![5, 1, 5, 1]).unwrap();
    assert_eq!(events.src(), [1, 3, 0, 2]);
    assert_eq!(events.input_positions(), [1, 3, 0, 2]);
    let events = events.with_features(1, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
    assert_eq!(events.features(), [1.0, 3.0, 0.0, 2.0]);
    let part = events.slice(1..3);
    assert_eq!((part.src(), part.features()), (&[3, 0][..], &[3.0, 0.0][..]));
    assert_eq!(part.slice(1..2).input_positions(), [0]);
    assert_eq!(part.before(5), 0..1);
    let error = part.with_types(vec![0, 0]).unwrap_err().to_string();
    assert!(error.contains("`types`") && error.contains("a whole stream"), "{error}");
}

#[test]
fn invalid_arrays_are_errors() {
    let error = |src, dst, time| EventStream::new(3, src, dst, time).unwrap_err().to_string();
    let text = error(vec![0, 3], vec![1, 1], vec![0, 0]);
    assert!(text.contains("`src`") && text.contains("0..3 for event 1"), "{text}");
    assert!(error(vec![0], vec![1, 1], vec![0]).contains("`dst`"));
    assert!(error(vec![0], vec![1], vec![]).contains("`time`"));
    let text = stream(vec![1, 2]).with_features(3, vec![0.0; 5]).unwrap_err().to_string();
    assert!(text.contains("`features`") && text.contains("6 values"), "{text}");
}

#[test]
fn splits_follow_quantiles_and_never_separate_equal_times() {
    let events = stream((0..100).map(|i| i / 7).collect());
    let split = EventSplit::by_time(&events, 0.15, 0.15).unwrap();
    let time = events.time();
    for end in [split.train.end, split.val.end] {
        assert!(time[end - 1] < time[end], "{split:?}");
    }
    // Quantile 0.7 of 100 times is number 69: time 9, whose last event is number 69.
    assert_eq!((split.train.clone(), split.val.clone()), (0..70, 70..91));
    let same = EventSplit::from_ranges(&events, split.train, split.val, split.test.clone());
    assert_eq!(same.unwrap().test, split.test);
    let error = EventSplit::from_ranges(&events, 0..69, 69..91, 91..100).unwrap_err().to_string();
    assert!(error.contains("`train`") && error.contains("both at time 9"), "{error}");
    assert!(EventSplit::from_ranges(&events, 0..70, 71..91, 91..100).is_err());
    assert!(EventSplit::from_ranges(&events, 0..70, 70..91, 91..99).is_err());
    assert!(EventSplit::by_time(&events, 0.5, 0.5).is_err());
    assert!(EventSplit::by_time(&events, f64::NAN, 0.1).is_err());
    let none = EventSplit::by_time(&stream(vec![]), 0.1, 0.1).unwrap();
    assert_eq!(none.test, 0..0);
}

#[test]
fn batches_end_between_times_and_depend_on_earlier_events_only() {
    let times = vec![0, 1, 1, 1, 2, 3, 3, 4, 9, 9];
    let all = stream(times.clone()).batches(3).unwrap();
    assert_eq!(all, [0..4, 4..7, 7..10]);
    // Without the events at and after time 4 the batches before are the same.
    assert_eq!(stream(times[..7].to_vec()).batches(3).unwrap(), all[..2]);
    assert!(stream(times).batches(0).is_err());
}

#[test]
fn windows_cover_all_events() {
    let events = stream(vec![-5, 0, 3, 12]);
    let windows: Vec<_> = events.windows(-5, 5).unwrap().collect();
    assert_eq!(windows, [(-5, 0..1), (0, 1..3), (5, 3..3), (10, 3..4)]);
    assert_eq!(events.snapshots(-5, 5).unwrap()[1].graph().total_edges(), 2);
    assert!(events.windows(0, 0).is_err());
    assert_eq!(events.between(0..12), 1..3);
    let reversed = std::ops::Range { start: 12, end: 0 };
    assert_eq!(events.between(reversed), 3..3);
    // Windows up to the largest time end.
    let late = stream(vec![i64::MAX - 1, i64::MAX]);
    assert_eq!(late.windows(i64::MAX - 1, i64::MAX).unwrap().count(), 1);
}

#[test]
fn samplers_read_the_latest_events_with_their_age() {
    let events =
        EventStream::new(4, vec![0, 1, 2, 0], vec![3, 3, 3, 1], vec![10, 20, 30, 15]).unwrap();
    let graph = events.to_graph(true).unwrap();
    let sampler = graph.sampler([2, 2]).unwrap().with_strategy(Strategy::Latest).unwrap();
    let times = [30, 21];
    let seeds = [("node", [3, 3], times)];
    let batch = sampler.sample_before(seeds, SampleKey::new(0)).unwrap();
    let dt = graph.dt(&batch, &times).unwrap();
    // Events by time: 0 → 3 at 10, 0 → 1 at 15, 1 → 3 at 20, 2 → 3 at 30.
    let last = batch.blocks.last().unwrap();
    assert_eq!(last.edge_ids("event"), [0, 2, 0, 2]);
    assert_eq!(dt[1][0], [20, 10, 11, 1]);
    for (block, of_block) in batch.blocks.iter().zip(&dt) {
        for (etype, of_type) in of_block.iter().enumerate() {
            assert_eq!(block.edge_ids(etype).len(), of_type.len());
            assert!(of_type.iter().all(|&dt| dt > 0));
        }
    }
    let error = graph.dt(&batch, &times[..1]).unwrap_err().to_string();
    assert!(error.contains("`batch`") && error.contains("fewer times than seeds"), "{error}");
}

/// Labels are types and float attributes are features, in the order of time; later rows change no number of a node.
#[test]
fn tables_become_streams() {
    let dir = tempfile::tempdir().unwrap();
    let read = |rows: &str| {
        let file = dir.path().join("mail.csv");
        std::fs::write(&file, format!("from,to,time,kind,size,rate\n{rows}")).unwrap();
        let csv = Csv::new(["size", "rate"])
            .with_endpoints("from", "to")
            .with_timestamp("time")
            .with_label("kind")
            .with_text_ids();
        let decoder = Decoder::new().with_attributes([AttrType::Float, AttrType::Float]).csv(csv);
        EventStream::from_table(&read_edges(&*file, &decoder)?)
    };
    let (events, names) =
        read("cy,ann,20,1,0.5,2\nbo,ann,10,0,1.5,3\nann,cy,20,4,2.5,4\n").unwrap();
    assert_eq!((events.src(), events.dst()), (&[0, 2, 1][..], &[1, 1, 2][..]));
    assert_eq!((events.time(), events.types()), (&[10, 20, 20][..], Some(&[0, 1, 4][..])));
    assert_eq!(events.features(), [1.5, 3.0, 0.5, 2.0, 2.5, 4.0]);
    assert_eq!(
        (names.number("bo"), names.number("ann"), names.number("cy")),
        (Some(0), Some(1), Some(2))
    );
    let (fewer, _) = read("bo,ann,10,0,1.5,3\n").unwrap();
    assert_eq!((fewer.src(), fewer.dst()), (&events.src()[..1], &events.dst()[..1]));
    let error = read("bo,ann,10,-1,1.5,3\n").unwrap_err().to_string();
    assert!(error.contains("a label from 0 in row 1"), "{error}");
}

#[test]
fn uci_messages_follow_their_description() {
    let Some(dir) = burn_gnn_testutil::data("uci_messages") else { return };
    let set = load_events(dir).unwrap();
    assert_eq!((set.events.len(), set.events.num_nodes()), (59835, 1899));
    assert_eq!(EventSplit::by_time(&set.events, 0.15, 0.15).unwrap(), set.split);
    assert_eq!(set.test_negatives.unwrap().len(), 8976);
    assert_eq!(set.events.time()[41883], 1085875744);
}

#[test]
fn other_layouts_are_errors() {
    let Some(dir) = burn_gnn_testutil::data("wn18rr") else { return };
    let error = load_events(dir).unwrap_err().to_string();
    assert!(error.contains("expected layout `events`, found `triples`"), "{error}");
}
