//! Family `hetero`: message passing over several edge types.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use burn_gnn::graph::{Column, Graph};
use burn_gnn::ops::function::{
    Message, Reduction, copy_e, copy_u, max, mean, min, sum, u_add_e, u_div_e, u_mul_e, u_sub_e,
};
use burn_gnn::ops::{Cross, GraphMessageOps, MessageOps, on};
use serde_json::Value;

use super::{Case, text};

fn message(case: &Case<'_>) -> Result<Message, String> {
    match text(case.json, "message")? {
        "copy_u" => Ok(copy_u("h", "m")),
        "copy_e" => Ok(copy_e("w", "m")),
        "u_add_e" => Ok(u_add_e("h", "w", "m")),
        "u_sub_e" => Ok(u_sub_e("h", "w", "m")),
        "u_mul_e" => Ok(u_mul_e("h", "w", "m")),
        "u_div_e" => Ok(u_div_e("h", "w", "m")),
        other => Err(format!("unknown message `{other}`")),
    }
}

fn reduction(case: &Case<'_>) -> Result<Reduction, String> {
    let reduce = match text(case.json, "reduce")? {
        "sum" => sum,
        "mean" => mean,
        "max" => max,
        "min" => min,
        other => return Err(format!("unknown reduce `{other}`")),
    };
    Ok(reduce("m", "out"))
}

fn cross(case: &Case<'_>) -> Result<Cross<'static>, String> {
    match text(case.json, "cross")? {
        "sum" => Ok(Cross::sum()),
        "mean" => Ok(Cross::mean()),
        "max" => Ok(Cross::max()),
        "min" => Ok(Cross::min()),
        "stack" => Ok(Cross::stack()),
        other => Err(format!("unknown cross `{other}`")),
    }
}

/// Creates the graph of the case, with its inputs as features `h` of nodes and `w` of edges.
fn graph(case: &Case<'_>, inputs: &BTreeMap<&str, Column>) -> Result<Graph, String> {
    let mut g = case.graph()?;
    for (role, x) in inputs {
        let frame = match role.strip_prefix("w/") {
            Some(relation) => g.edges_mut(relation).map(|f| (f, "w")),
            None => g.nodes_mut(*role).map(|f| (f, "h")),
        };
        let (frame, field) = frame.map_err(|e| e.to_string())?;
        frame.insert_column(field, x.clone()).map_err(|e| e.to_string())?;
    }
    Ok(g)
}

pub(crate) fn run(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let mut inputs = BTreeMap::new();
    for role in case.roles("inputs") {
        let x = ranked!(case.rank("inputs", role)?, D => case.tensor::<D>("inputs", role, device).map(Column::new))?;
        inputs.insert(role, x);
    }
    let g = graph(case, &inputs)?;
    let (message, reduction) = (message(case)?, reduction(case)?);
    let out = match (text(case.json, "op")?, case.json["relation"].as_str()) {
        ("update_all", Some(relation)) => {
            g.on(relation).and_then(|one| one.update_all(message, reduction))
        }
        ("update_all", None) => g.update_all(message, reduction),
        ("multi_update_all", _) => {
            let calls = g
                .schema()
                .etypes()
                .iter()
                .map(|t| on(t.clone(), message.clone(), reduction.clone()));
            g.multi_update_all(calls, cross(case)?)
        }
        (other, _) => return Err(format!("unknown op `{other}`")),
    };
    let out = out.map_err(|e| e.to_string())?;
    if let Some(order) = case.json["stack_order"].as_object() {
        for (ntype, relations) in order {
            let t = out.schema().ntype(ntype).map_err(|e| e.to_string())?;
            let ours: Vec<&str> = out
                .schema()
                .etypes_into(t)
                .map(|e| out.schema().etypes()[e].relation.as_str())
                .collect();
            if *relations != Value::from(ours.clone()) {
                return Err(format!(
                    "relations into `{ntype}` are stacked as {ours:?}, expected {relations}"
                ));
            }
        }
    }
    let mut loss = Tensor::<1>::zeros([1], (device, case.dtype()?));
    for role in case.roles("outputs") {
        let ntype = role
            .strip_prefix("out/")
            .ok_or_else(|| format!("output `{role}` names no node type"))?;
        let y =
            out.nodes(ntype).and_then(|frame| frame.column("out")).map_err(|e| e.to_string())?;
        loss = loss
            + match case.rank("outputs", role)? {
                // Inputs of rank 5, stacked.
                6 => weighted::<6>(case, role, y, device)?,
                rank => ranked!(rank, D => weighted::<D>(case, role, y, device))?,
            };
    }
    let grads = loss.backward();
    for (role, x) in &inputs {
        ranked!(x.shape().num_dims(), D => {
            let x: Tensor<D> = x.tensor().ok_or_else(|| format!("`{role}` is no float tensor"))?;
            case.compare_grad(role, &x, &grads)
        })?;
    }
    Ok(())
}

/// Compares an output and returns the sum of its product with the cotangent.
fn weighted<const D: usize>(
    case: &Case<'_>,
    role: &str,
    out: &Column,
    device: &Device,
) -> Result<Tensor<1>, String> {
    let out: Tensor<D> = out
        .tensor()
        .ok_or_else(|| format!("`{role}` is a {out:?}, expected a float tensor of rank {D}"))?;
    case.compare("outputs", role, out.clone())?;
    Ok((out * case.tensor("grad_outputs", role, device)?).sum())
}
