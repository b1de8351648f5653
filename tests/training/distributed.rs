//! Ranks of `reproduce rgcn-distributed` load their part and a few numbers, not the data set.

#[path = "../../examples/reproduce/src/rgcn_distributed/task.rs"]
mod task;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use burn::tensor::{Device, FloatDType};
use burn_gnn::data::crates_graph;
use burn_gnn::dist::{Communicator, DistGraph, DistSampler, run_ranks};
use burn_gnn::models::{TypeInput, TypeMap};
use burn_gnn::sampling::Loader;

use crate::common::data::{Loaded, load};
use task::{Task, inputs};

#[test]
fn ranks_hold_their_parts_alone() {
    let device = Device::flex();
    let read = || -> Result<Loaded> { load(crates_graph(), None, &device, FloatDType::F32) };
    let whole = read().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let rank = |comm: std::sync::Arc<dyn Communicator>| -> Result<usize> {
        let (mut path, mut own) = (PathBuf::new(), None);
        if comm.rank() == 0 {
            let (json, task) = Task::write(read()?, comm.size(), 0, dir.path())?;
            (path, own) = (json, Some(task));
        }
        let path =
            comm.broadcast("where the parts are", 0, path.to_str().unwrap().as_bytes().to_vec())?;
        let task = Task::share(&*comm, own)?;
        assert_eq!((task.target, task.num_classes), (whole.target, whole.num_classes));
        assert_eq!((task.train.len(), task.test.len()), (whole.train.total, whole.test.total));
        let g = DistGraph::open("graph", String::from_utf8(path)?, comm)?;
        let of_types = inputs(&g)
            .into_iter()
            .map(|input| Some(input).filter(|input| *input != TypeInput::Embedding));
        assert_eq!(TypeMap::from_list(whole.graph.schema(), of_types), whole.inputs());
        // Labels are read from the parts.
        let of: BTreeMap<u64, u32> = whole
            .train
            .index
            .iter()
            .map(|&v| u64::from(v))
            .zip(whole.train.labels.iter().copied())
            .collect();
        let seeds = g.node_seeds([(&g.ntypes()[task.target], &task.train)])?;
        for b in Loader::new(DistSampler::new(&g, [2])?, seeds, 16)?.epoch(0) {
            let b = b?;
            let (rows, ids) =
                (task.labels(&g, &b)?, b.batch.mini.blocks[0].original_ids(task.target));
            assert!(
                rows.index
                    .iter()
                    .zip(&*rows.labels)
                    .all(|(&row, label)| of[&ids[row as usize]] == *label)
            );
            assert_eq!((rows.index.len(), rows.total), (b.num_seeds(), b.global_seeds));
        }
        Ok(g.local_partition().num_inner_nodes())
    };
    let inner = run_ranks(3, |comm| rank(comm).map_err(|e| format!("{e:#}"))).unwrap();
    assert_eq!(inner.iter().sum::<usize>(), whole.graph.total_nodes());
    assert!(inner.iter().all(|&n| n < whole.graph.total_nodes()), "{inner:?}");
}
