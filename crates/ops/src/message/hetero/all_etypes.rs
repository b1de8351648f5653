//! Runs `update_all` over all edge types: the messages of all edge types into a node type are reduced together.

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorData};
use burn_gnn_graph::{Column, Relation};
use burn_gnn_plan::Reduce;

use crate::error::OpsError;
use crate::message::columns::{features, flat, shaped};
use crate::message::data::graph_data::GraphData;
use crate::message::data::relation_data::{apply, write};
use crate::message::fields::Fields;
use crate::message::hetero::cross::{Part, check_alike, combined, with_messages};
use crate::message::reduce::{Call, receive_builtin};
use crate::multi::CrossReduce;

/// Reduces every relation by a fused operator, then combines relations. All builtin reducers can be divided in this way,
/// so no relation of all edges has to be built and sorted.
pub(crate) fn update_across_etypes<G: GraphData>(g: &G, call: &Call<'_>) -> Result<G, OpsError> {
    let op = call.op;
    let Some(reduction) = call.reducing.builtin() else { return Err(OpsError::Joint { op }) };
    let mut into: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let schema = g.message_schema();
    for etype in 0..schema.etypes().len() {
        into.entry(schema.endpoints(etype).1).or_default().push(etype);
    }
    let mut out = g.clone();
    for (ntype, etypes) in into {
        let mean = reduction.reduce == Reduce::Mean && etypes.len() > 1;
        let reduce = if mean { Reduce::Sum } else { reduction.reduce };
        let cross = if reduce.selects() { reduce } else { CrossReduce::Sum };
        let (mut parts, mut relations) =
            (Vec::with_capacity(etypes.len()), Vec::with_capacity(etypes.len()));
        for &etype in &etypes {
            let data = g.message_data(etype);
            let made = receive_builtin(call, &data.all_edges(), reduction, reduce)?;
            let rows = made.column("messages", &reduction.out)?.clone();
            let has = reduce.selects().then(|| with_messages(data.relation())).flatten();
            parts.push(Part { etype, rows, has });
            relations.push(data.relation().clone());
        }
        check_alike(op, schema, &reduction.out, &parts)?;
        let mut column = combined(cross, &parts);
        if mean {
            column = divided(&column, &relations);
        }
        let frame = out.message_nodes(ntype)?;
        write(frame, &Fields::default().with_column(&reduction.out, column), None)?;
        for f in &call.reducing.apply {
            apply(op, frame, None, f)?;
        }
    }
    Ok(out)
}

/// Divides by the number of messages from all edge types.
fn divided(sums: &Column, relations: &[Relation]) -> Column {
    let mut degrees = vec![0.0; sums.len()];
    for relation in relations {
        degrees.iter_mut().zip(relation.in_degrees()).for_each(|(sum, d)| *sum += f64::from(d));
    }
    let counts: Vec<f64> = degrees.into_iter().map(|d| d.max(1.0)).collect();
    let counts = Tensor::<2>::from_data(
        TensorData::new(counts, [sums.len(), 1]),
        (sums.device(), sums.dtype()),
    );
    shaped(flat(sums) / counts, features(sums))
}
