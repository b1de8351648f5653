//! Opens the part of a rank as a graph over all ranks.

use std::path::Path;
use std::sync::{Arc, RwLock};

use burn::tensor::TensorData;
use burn_gnn_graph::internal::cpu_device;
use burn_gnn_graph::{Graph, Relation, Schema};

use super::directory::directories;
use super::dist_graph::{DistGraph, Inner};
use super::fetch::Counters;
use super::owners::Owners;
use super::registry::Registry;
use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::agree;
use crate::halo::HaloPlan;
use crate::local_partition::{
    LocalStructure, global_in_degrees, global_out_degrees, local_structure, requests,
    same_partitioning,
};
use crate::partition::Partition;
use crate::partition::read::parts::PartitionFiles;
use crate::trainer_rank::{TrainerRank, wrong_rank};

impl DistGraph {
    /// Opens the partitioned graph `name`: reads the part of this rank from the folder of the metadata file
    /// `part_config`. Collective.
    ///
    /// The number of ranks is the number of parts. If parts have several trainers
    /// ([`num_trainers_per_machine`](crate::PartitionConfig::num_trainers_per_machine)), it can also be the number of
    /// trainers of all parts: rank `r` of `parts · trainers` is a trainer of part `r / trainers` and
    /// [owns](Self::own_nodes) the nodes whose `trainer_id` is `r`.
    ///
    /// # Errors
    /// A file is missing or damaged; the graph has another name; the number of ranks is neither that of parts nor that
    /// of trainers; ranks have parts of different partitionings.
    pub fn open(
        name: &str,
        part_config: impl AsRef<Path>,
        comm: Arc<dyn Communicator>,
    ) -> Result<Self, DistError> {
        let path = part_config.as_ref();
        let read = || {
            let opened = PartitionFiles::new(path)?;
            let (num_parts, trainers) =
                (opened.book.num_parts(), opened.meta.num_trainers_per_machine);
            let wrong = || wrong_rank(&*comm, comm.rank(), num_parts, trainers);
            let part = opened.part(
                TrainerRank::of(comm.rank(), comm.size(), num_parts, trainers)
                    .ok_or_else(wrong)?
                    .part,
            )?;
            if part.graph_name() == name {
                return Ok(part);
            }
            let (expected, found) = (
                format!("the name of the graph in {}, `{}`", path.display(), part.graph_name()),
                format!("`{name}`"),
            );
            Err(DistError::Config { arg: "name", expected, found })
        };
        Self::from_partition(agree(&*comm, "open graph", read())?, comm)
    }

    /// [`open`](Self::open) for a part in memory. Trainers that are threads of one process can share it as an `Arc`.
    /// Collective.
    ///
    /// # Errors
    /// The part is not the one of this rank; ranks have parts of different partitionings; original ids exceed `u32`.
    ///
    /// # Cost
    /// `O(V + E)` for the nodes and edges of the part, which is held twice: as it is stored, and as a graph to sample
    /// from.
    pub fn from_partition(
        partition: impl Into<Arc<Partition>>,
        comm: Arc<dyn Communicator>,
    ) -> Result<Self, DistError> {
        let partition = partition.into();
        let (book, part, trainers) =
            (partition.book().clone(), partition.part(), partition.num_trainers());
        let trainer = TrainerRank::of(comm.rank(), comm.size(), book.num_parts(), trainers)
            .filter(|s| s.part == part);
        let checked = trainer.ok_or_else(|| wrong_rank(&*comm, part, book.num_parts(), trainers));
        let trainer = agree(&*comm, "open graph: part of this rank", checked)?;
        same_partitioning(&partition, &*comm)?;
        let LocalStructure { relations, halo, orig_nodes, orig_halo, orig_edges } =
            agree(&*comm, "open graph: part", local_structure(&partition))?;
        let plan = HaloPlan::new(comm.clone(), requests(&book, trainer, &halo, &*comm)?)?;
        let out_degrees = global_out_degrees(&book, &relations, &plan)?;
        let in_degrees = global_in_degrees(&book, &relations, &plan)?;
        let node_ids: Vec<Vec<u64>> = orig_nodes
            .into_iter()
            .zip(orig_halo)
            .map(|(inner, halo)| [inner, halo].concat())
            .collect();
        let local = agree(
            &*comm,
            "open graph: structure",
            local_graph(book.schema(), &node_ids, &relations),
        )?;
        let [nodes, edges] = [true, false].map(|is_node| Owners::of_parts(&book, is_node, trainer));
        let trainers = trainers_of(&partition, &nodes, &relations);
        let ids = |of: &[Vec<u32>]| {
            of.iter()
                .enumerate()
                .map(|(t, ids)| ((t, TRAINER_ID.to_owned()), numbers(ids)))
                .collect()
        };
        let inner = Inner {
            directories: directories(&*comm, &nodes, &node_ids)?,
            trainer,
            node_rows: Owners::of_ranks(&nodes),
            edge_rows: Owners::of_ranks(&edges),
            nodes,
            edges,
            trainer_ids: trainers
                .as_ref()
                .map_or_else(Default::default, |[nodes, edges]| [ids(nodes), ids(edges)]),
            trainers: trainers.filter(|_| trainer.trainers > 1),
            inserted: RwLock::default(),
            registry: Registry::default(),
            rows: Counters::default(),
            edge_ids: orig_edges,
            partition,
            local,
            halo,
            node_ids,
            out_degrees,
            in_degrees,
        };
        Ok(Self { inner: Arc::new(inner), comm, device: cpu_device() })
    }
}

/// Name of the column that stores the rank that trains on a node or edge.
const TRAINER_ID: &str = "trainer_id";

/// Trainer of each inner node and inner edge, per type, if parts have several trainers. The trainer of an edge is that
/// of its destination.
fn trainers_of(
    partition: &Partition,
    nodes: &Owners,
    relations: &[Relation],
) -> Option<[Vec<Vec<u32>>; 2]> {
    // Inner nodes are ordered by type.
    let mut rest = partition.trainer_ids()?;
    let own = (0..nodes.names().len()).map(|t| {
        let (own, tail) = rest.split_at(nodes.count(t));
        rest = tail;
        own.to_vec()
    });
    let own: Vec<Vec<u32>> = own.collect();
    let schema = partition.book().schema();
    let of = |(t, r): (usize, &Relation)| {
        r.dst().iter().map(|&v| own[schema.endpoints(t).1][v as usize]).collect()
    };
    let edges = relations.iter().enumerate().map(of).collect();
    Some([own, edges])
}

/// A column of integers.
fn numbers(values: &[u32]) -> TensorData {
    TensorData::new(values.iter().map(|&v| i64::from(v)).collect::<Vec<_>>(), [values.len()])
}

/// Builds a graph of all local nodes. The relations of a part only have inner nodes as destinations.
fn local_graph(
    schema: &Arc<Schema>,
    node_ids: &[Vec<u64>],
    relations: &[Relation],
) -> Result<Graph, DistError> {
    let mut builder = Graph::builder();
    for (name, ids) in schema.ntypes().iter().zip(node_ids) {
        builder = builder.nodes(name, ids.len());
    }
    for (t, r) in relations.iter().enumerate() {
        let (s, d) = schema.endpoints(t);
        let whole = Relation::from_coo(
            node_ids[s].len(),
            node_ids[d].len(),
            r.src().to_vec(),
            r.dst().to_vec(),
        )?;
        builder = builder.relation(schema.etypes()[t].clone(), whole);
    }
    Ok(builder.build()?)
}
