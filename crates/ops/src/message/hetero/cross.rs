//! Runs `multi_update_all`: reduces inside edge types, then across edge types.

use std::collections::BTreeMap;

use burn::tensor::{Bool, Tensor, TensorData};
use burn_gnn_graph::{Column, EdgeKey, GraphError, Relation, Schema};

use crate::cat_features::cat_features;
use crate::check::Difference;
use crate::div_by::div_by;
use crate::error::OpsError;
use crate::message::batch::node_batch::NodeBatch;
use crate::message::columns::{check_float, features, flat, shaped};
use crate::message::data::graph_data::GraphData;
use crate::message::data::relation_data::{apply, write};
use crate::message::fields::Fields;
use crate::message::function::{MessageFunction, ReduceFunction};
use crate::message::reduce::Call;
use crate::multi::{CrossReduce, beats};

/// Message and reduce function of one edge type in
/// [`multi_update_all`](crate::GraphMessageOps::multi_update_all); created by [`on`].
pub struct RelationCall<'a> {
    etype: Box<dyn EdgeKey + 'a>,
    message: Box<dyn MessageFunction + 'a>,
    reduce: Box<dyn ReduceFunction + 'a>,
}

/// Assigns a message and a reduce function to an edge type.
pub fn on<'a>(
    etype: impl EdgeKey + 'a,
    message: impl MessageFunction + 'a,
    reduce: impl ReduceFunction + 'a,
) -> RelationCall<'a> {
    RelationCall { etype: Box::new(etype), message: Box::new(message), reduce: Box::new(reduce) }
}

/// A function of the results of all edge types for a node type.
type OverFn<'a> = dyn Fn(Vec<Column>) -> Result<Column, OpsError> + 'a;

enum Over<'a> {
    Reduce(CrossReduce),
    Stack,
    With(Box<OverFn<'a>>),
}

/// A function of a batch of nodes.
type ApplyFn<'a> = dyn Fn(&NodeBatch) -> Result<Fields, OpsError> + 'a;

/// Cross reducer: combines the results of edge types at a node in
/// [`multi_update_all`](crate::GraphMessageOps::multi_update_all). A [`CrossReduce`] converts to it.
pub struct Cross<'a> {
    over: Over<'a>,
    apply: Option<Box<ApplyFn<'a>>>,
}

impl From<CrossReduce> for Cross<'_> {
    fn from(reduce: CrossReduce) -> Self {
        Self { over: Over::Reduce(reduce), apply: None }
    }
}

impl<'a> Cross<'a> {
    /// Sum over edge types.
    pub fn sum() -> Self {
        CrossReduce::Sum.into()
    }
    /// Sum divided by the number of edge types.
    pub fn mean() -> Self {
        CrossReduce::Mean.into()
    }
    /// Maximum over edge types, per entry.
    pub fn max() -> Self {
        CrossReduce::Max.into()
    }
    /// Minimum over edge types, per entry.
    pub fn min() -> Self {
        CrossReduce::Min.into()
    }
    /// Stacks the results, `[nodes, edge types, ..]`, in the order of the schema (source type, then relation).
    pub fn stack() -> Self {
        Self { over: Over::Stack, apply: None }
    }
    /// Combines the results by a function of the rows, `[nodes, ..]` per edge type in the order of the schema, which
    /// returns one row per node.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_gnn_ops::Cross;
    /// let concatenated = Cross::with(|rows: Vec<Tensor<2>>| Tensor::cat(rows, 1));
    /// ```
    pub fn with<const D: usize, const O: usize>(
        f: impl Fn(Vec<Tensor<D>>) -> Tensor<O> + 'a,
    ) -> Self {
        let over = move |columns: Vec<Column>| {
            let rows = columns.iter().map(|column| {
                let asked = || GraphError::ColumnType {
                    frame: "cross reducer".into(),
                    name: "rows of an edge type".into(),
                    expected: format!("Float tensor of rank {D}"),
                    actual: format!("Float tensor of rank {}", column.shape().num_dims()),
                };
                Ok(column.tensor().ok_or_else(asked)?)
            });
            Ok(Column::new(f(rows.collect::<Result<_, OpsError>>()?)))
        };
        Self { over: Over::With(Box::new(over)), apply: None }
    }
    /// Runs `apply` on the nodes of every destination type afterwards.
    #[must_use]
    pub fn then(self, apply: impl Fn(&NodeBatch) -> Result<Fields, OpsError> + 'a) -> Self {
        Self { apply: Some(Box::new(apply)), ..self }
    }
}

/// Results of one edge type.
pub(crate) struct Part {
    pub(crate) etype: usize,
    pub(crate) rows: Column,
    /// Whether each destination uses this edge type; `None` if all do.
    pub(crate) has: Option<Vec<bool>>,
}

/// Whether each destination has messages; `None` if all have.
pub(crate) fn with_messages(relation: &Relation) -> Option<Vec<bool>> {
    let has: Vec<bool> = relation.in_degrees().map(|d| d > 0).collect();
    has.contains(&false).then_some(has)
}

pub(crate) fn multi<G: GraphData>(
    g: &G,
    calls: Vec<RelationCall<'_>>,
    cross: &Cross<'_>,
) -> Result<G, OpsError> {
    const OP: &str = "multi_update_all";
    let schema = g.message_schema();
    let mut sorted = BTreeMap::new();
    for call in calls {
        let etype = schema.etype(&*call.etype)?;
        if sorted.insert(etype, call).is_some() {
            return Err(GraphError::Duplicate {
                what: "edge type",
                name: schema.etypes()[etype].to_string(),
            }
            .into());
        }
    }
    // By destination type and field, in the order of edge types.
    let mut parts: BTreeMap<usize, BTreeMap<String, Vec<Part>>> = BTreeMap::new();
    let mut first: BTreeMap<usize, (usize, Vec<String>)> = BTreeMap::new();
    for (etype, call) in &sorted {
        let call = Call::new(OP, &*call.message, &*call.reduce);
        let mut data = g.message_data(*etype);
        let fields = data.update_all(&call)?;
        let (_, ntype) = schema.endpoints(*etype);
        let names = fields.owned_names();
        let (of, expected) = first.entry(ntype).or_insert_with(|| (*etype, names.clone()));
        if let Some(difference) = Difference::of("fields", &*expected, &names) {
            return Err(unlike(OP, schema, [*of, *etype], difference));
        }
        // Under a maximum of maxima (or a minimum of minima) an edge type without messages contributes nothing.
        let left_out = call.reducing.apply.is_empty()
            && call.reducing.builtin().is_some_and(|r| {
                matches!(cross.over, Over::Reduce(over) if r.reduce.selects() && r.reduce == over)
            });
        let has = left_out.then(|| with_messages(data.relation())).flatten();
        for (name, rows) in fields.iter() {
            let part = Part { etype: *etype, rows: rows.clone(), has: has.clone() };
            parts.entry(ntype).or_default().entry(name.to_owned()).or_default().push(part);
        }
    }
    let mut out = g.clone();
    for (ntype, fields) in parts {
        let frame = out.message_nodes(ntype)?;
        let n = frame.len();
        for (name, parts) in fields {
            check_alike(OP, schema, &name, &parts)?;
            let column = match &cross.over {
                Over::Reduce(reduce) => combined(*reduce, &parts),
                Over::Stack => stacked(&parts),
                Over::With(f) => f(parts.into_iter().map(|part| part.rows).collect())?,
            };
            let made = Fields::default().with_column(&name, column).checked(
                &format!("{OP}: cross reducer"),
                "one row per node",
                n,
            )?;
            write(frame, &made, None)?;
        }
        if let Some(f) = &cross.apply {
            apply(OP, frame, None, f)?;
        }
    }
    Ok(out)
}

fn unlike(
    op: &'static str,
    schema: &Schema,
    [first, etype]: [usize; 2],
    Difference { what, expected, actual }: Difference,
) -> OpsError {
    let name = |etype: usize| schema.etypes()[etype].to_string();
    OpsError::Relations {
        op,
        ntype: schema.etypes()[etype].dst.as_str().into(),
        first: name(first).into(),
        etype: name(etype).into(),
        what,
        expected: expected.into(),
        actual: actual.into(),
    }
}

/// Checks that the results of all edge types have one row shape, element type and device.
pub(crate) fn check_alike(
    op: &'static str,
    schema: &Schema,
    name: &str,
    parts: &[Part],
) -> Result<(), OpsError> {
    let first = &parts[0];
    for part in parts {
        check_float(&format!("edge type `{}`", schema.etypes()[part.etype]), name, &part.rows)?;
        let (x, y) = (&first.rows, &part.rows);
        let difference = Difference::of("row shape", features(x), features(y))
            .or_else(|| Difference::of("element type", x.dtype(), y.dtype()))
            .or_else(|| Difference::of("device", x.device(), y.device()));
        if let Some(difference) = difference {
            return Err(unlike(op, schema, [first.etype, part.etype], difference));
        }
    }
    Ok(())
}

fn stacked(parts: &[Part]) -> Column {
    let rows: Vec<Tensor<2>> = parts.iter().map(|part| flat(&part.rows)).collect();
    let shape = [&[parts.len()], features(&parts[0].rows)].concat();
    shaped(cat_features(rows), &shape)
}

/// Combines results to one row per destination. Of equal entries under max and min the first one is selected.
pub(crate) fn combined(reduce: CrossReduce, parts: &[Part]) -> Column {
    let mut out = flat(&parts[0].rows);
    let mut has = parts[0].has.clone();
    for part in &parts[1..] {
        let rows = flat(&part.rows);
        out = match reduce {
            CrossReduce::Sum | CrossReduce::Mean => out + rows,
            CrossReduce::Max | CrossReduce::Min => {
                let take = taken(
                    &out,
                    &rows,
                    reduce == CrossReduce::Max,
                    has.as_deref(),
                    part.has.as_deref(),
                );
                has = either(has, part.has.as_deref());
                out.mask_where(take, rows)
            }
        };
    }
    if reduce == CrossReduce::Mean {
        out = div_by(out, parts.len() as f64);
    }
    shaped(out, features(&parts[0].rows))
}

/// Mask of the entries where `y` replaces `x`: `y` is used, and `x` is not used or not as large (small).
fn taken(
    x: &Tensor<2>,
    y: &Tensor<2>,
    largest: bool,
    has_x: Option<&[bool]>,
    has_y: Option<&[bool]>,
) -> Tensor<2, Bool> {
    let shape = x.dims();
    let mut take = beats(x, y, largest);
    if shape.contains(&0) {
        return take;
    }
    let mask = |has: Vec<bool>| {
        Tensor::<2, Bool>::from_data(TensorData::new(has, [shape[0], 1]), &x.device()).expand(shape)
    };
    if let Some(has) = has_x {
        take = take.bool_or(mask(has.iter().map(|has| !has).collect()));
    }
    if let Some(has) = has_y {
        take = take.bool_and(mask(has.to_vec()));
    }
    take
}

fn either(x: Option<Vec<bool>>, y: Option<&[bool]>) -> Option<Vec<bool>> {
    let both: Vec<bool> = x?.iter().zip(y?).map(|(x, y)| *x || *y).collect();
    both.contains(&false).then_some(both)
}
