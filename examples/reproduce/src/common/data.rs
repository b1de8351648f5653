//! Loads a data set as a graph with feature columns, labelled nodes and model inputs.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn::data::datasets::Known;
use burn_gnn::data::{Dataset, load_dataset};
use burn_gnn::graph::Graph;
use burn_gnn::models::{NodeTask, NodeTensors, Rows, TypeInput, TypeMap};
use burn_gnn::ops::copy_u_mean;

/// Column that holds the features of a node type.
pub(crate) const FEATURE: &str = "x";

pub(crate) struct Loaded {
    pub(crate) name: String,
    /// Features in column [`FEATURE`], classes in `y`, the split in `train_mask`, `val_mask` and `test_mask`.
    pub(crate) graph: Graph,
    pub(crate) target: usize,
    pub(crate) num_classes: usize,
    pub(crate) train: Rows,
    pub(crate) val: Rows,
    pub(crate) test: Rows,
}

/// The data set in a folder, in the .npy layout or as tables; where there is none, a well-known set of that name.
pub(crate) fn data_set(data: Option<&Path>, default: Known) -> Result<Dataset> {
    let Some(data) = data else { return Ok(default.load()?) };
    // A folder of that name may be something else, such as `crates` here.
    let is_set = ["metadata.json", "tables.json"].iter().any(|file| data.join(file).exists());
    match data.to_str().map(str::parse::<Known>) {
        Some(Ok(known)) if !is_set => Ok(known.load()?),
        _ => load_dataset(data).with_context(|| format!("loading {}", data.display())),
    }
}

/// Puts features into frames and picks the split (`None`: the only or first one; `60` stands for `public_60`). Each row
/// of features is divided by its sum, as GCN and its successors do with word counts, and stored in `dtype`.
pub(crate) fn load(
    mut set: Dataset,
    split: Option<&str>,
    device: &Device,
    dtype: FloatDType,
) -> Result<Loaded> {
    let features = std::mem::take(&mut set.features);
    let known = || set.splits.keys().cloned().collect::<Vec<_>>().join(", ");
    let split = match split {
        Some(name) => {
            let short = || {
                set.splits.iter().find(|(full, _)| {
                    full.strip_suffix(name).is_some_and(|rest| rest.ends_with('_'))
                })
            };
            let found = set.splits.get(name).or_else(|| short().map(|(_, split)| split));
            found.with_context(|| format!("no split `{name}`; there are {}", known()))?
        }
        None => set.splits.values().next().context("the data set has no split")?,
    };
    let split = split.clone();
    let rows = |ids: &[u32]| Rows::new(ids, &set.labels, set.num_classes);
    let (train, val, test) = (rows(&split.train)?, rows(&split.val)?, rows(&split.test)?);
    if train.total == 0 {
        bail!("the split has no training node");
    }
    set.splits = [("split".into(), split)].into();
    let mut graph = set.to_graph(device)?;
    for (ntype, f) in &features {
        let f = f.row_normalized();
        let x = Tensor::<2>::from_data(
            TensorData::new(f.try_to_dense()?, [f.rows(), f.cols()]),
            (device, DType::from(dtype)),
        );
        graph.nodes_mut(ntype)?.insert(FEATURE, x)?;
    }
    let target = graph.schema().ntype(&set.target)?;
    Ok(Loaded { name: set.name, graph, target, num_classes: set.num_classes, train, val, test })
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (train, val, test) = (self.train.total, self.val.total, self.test.total);
        writeln!(
            f,
            "{} ({} classes, {train} / {val} / {test} train, val, test)",
            self.name, self.num_classes
        )?;
        write!(f, "{}", self.graph)
    }
}

impl Loaded {
    /// Features where a type has them, a learned embedding otherwise.
    pub(crate) fn inputs(&self) -> TypeMap<TypeInput> {
        self.features().map(|_, x| TypeInput::Features(x.dims()[1]))
    }

    /// Feature size of a graph of one type.
    pub(crate) fn width(&self) -> Result<usize> {
        let x = self.features().into_values().pop();
        Ok(x.with_context(|| {
            format!("`{}` has no node features, which this model reads", self.name)
        })?
        .dims()[1])
    }

    /// Gives each type without features the mean of its neighbours' features, along the first relation that leads there
    /// from a type that has some.
    pub(crate) fn mean_features(&mut self) -> Result<()> {
        let schema = self.graph.schema().clone();
        let known = self.features().into_list(&schema)?;
        for (t, ntype) in schema.ntypes().iter().enumerate().filter(|t| known[t.0].is_none()) {
            let from = schema
                .etypes_into(t)
                .find_map(|r| known[schema.endpoints(r).0].clone().map(|x| (r, x)));
            let (r, x) = from.with_context(|| {
                format!("no relation leads from a node type with features to `{ntype}`")
            })?;
            let mean = copy_u_mean(&self.graph.relations()[r], x);
            self.graph.nodes_mut(ntype)?.insert(FEATURE, mean)?;
        }
        Ok(())
    }

    /// Feature tensors of a whole graph, of the node types that have some.
    pub(crate) fn features(&self) -> NodeTensors {
        let of_type = self.graph.node_frames().iter().map(|f| f.get::<2>(FEATURE).ok());
        NodeTensors::from_list(self.graph.schema(), of_type)
    }

    /// Name of the node type to classify.
    pub(crate) fn target_type(&self) -> &str {
        &self.graph.schema().ntypes()[self.target]
    }

    /// The task on `graph`, which has the nodes of the data's own.
    pub(crate) fn task<'a>(&self, graph: &'a Graph) -> NodeTask<'a, Graph> {
        NodeTask {
            graph,
            features: self.features(),
            target: self.target_type().to_owned(),
            train: self.train.clone(),
            val: self.val.clone(),
            test: self.test.clone(),
        }
    }

    /// The same nodes, each with an edge to itself alone: a graph of one type where neighbours are out of sight.
    pub(crate) fn without_neighbours(&self) -> Result<Graph> {
        let (ntype, etype) =
            (&self.graph.schema().ntypes()[0], self.graph.schema().etypes()[0].clone());
        let n = self.graph.node_counts()[0];
        let own: Vec<u32> = (0..n as u32).collect();
        Ok(Graph::builder().nodes(ntype, n).edges(etype, own.clone(), own).build()?)
    }

    /// The same nodes and features without any edge.
    pub(crate) fn without_edges(&self) -> Result<Graph> {
        let mut b = Graph::builder();
        for (t, &n) in self.graph.schema().ntypes().iter().zip(self.graph.node_counts()) {
            b = b.nodes(t, n);
        }
        Ok(b.build()?)
    }
}
