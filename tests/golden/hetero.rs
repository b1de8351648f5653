//! Family `hetero`: message passing over several edge types.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use burn_gnn::graph::{Graph, Relation};
use burn_gnn::ops::function::{Message, Reduction, copy_u, max, mean, min, sum, u_add_e, u_mul_e};
use burn_gnn::ops::{Cross, GraphMessageOps, MessageOps, on};
use serde_json::Value;

use super::{Case, f64_le, text};

fn message(case: &Case<'_>) -> Result<Message, String> {
    match text(case.json, "message")? {
        "copy_u" => Ok(copy_u("h", "m")),
        "u_add_e" => Ok(u_add_e("h", "w", "m")),
        "u_mul_e" => Ok(u_mul_e("h", "w", "m")),
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

/// The roles of a group of tensors.
fn roles<'a>(case: &'a Case<'_>, group: &str) -> Result<Vec<&'a str>, String> {
    let map = case.json[group].as_object().ok_or_else(|| format!("`{group}` is no map"))?;
    Ok(map.keys().map(String::as_str).collect())
}

/// The graph of the case, with its inputs as features `h` of nodes and `w` of edges.
fn graph(case: &Case<'_>, inputs: &BTreeMap<&str, Tensor<2>>) -> Result<Graph, String> {
    let json = &case.manifest["graphs"][text(case.json, "graph")?];
    let count = |ntype: &str| json["num_nodes"][ntype].as_u64().map(|n| n as usize).ok_or_else(|| format!("no count of `{ntype}`"));
    let ids = |r: &Value, end| -> Result<Vec<i64>, String> {
        let view = case.edges.tensor(text(r, end)?).map_err(|e| e.to_string())?;
        Ok(view.data().chunks_exact(8).map(|b| f64_le(b).to_bits() as i64).collect())
    };
    let mut builder = Graph::builder();
    for r in json["relations"].as_array().ok_or("`relations` is no list")? {
        let (s, d) = (text(r, "src_type")?, text(r, "dst_type")?);
        let relation = Relation::from_coo_i64(count(s)?, count(d)?, &ids(r, "src")?, &ids(r, "dst")?).map_err(|e| e.to_string())?;
        builder = builder.relation((s, text(r, "rel")?, d), relation);
    }
    let mut g = builder.build().map_err(|e| e.to_string())?;
    for (role, x) in inputs {
        let frame = match role.strip_prefix("w/") {
            Some(relation) => g.edges_mut(relation).map(|f| (f, "w")),
            None => g.nodes_mut(role).map(|f| (f, "h")),
        };
        let (frame, field) = frame.map_err(|e| e.to_string())?;
        frame.insert(field, x.clone()).map_err(|e| e.to_string())?;
    }
    Ok(g)
}

pub(crate) fn run(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let mut inputs = BTreeMap::new();
    for role in roles(case, "inputs")? {
        inputs.insert(role, case.tensor::<2>("inputs", role, device)?);
    }
    let g = graph(case, &inputs)?;
    let (message, reduction) = (message(case)?, reduction(case)?);
    let out = match (text(case.json, "op")?, case.json["relation"].as_str()) {
        ("update_all", Some(relation)) => g.on(relation).and_then(|one| one.update_all(message, reduction)),
        ("update_all", None) => g.update_all(message, reduction),
        ("multi_update_all", _) => {
            let calls = g.schema().etypes().iter().map(|t| on(t.clone(), message.clone(), reduction.clone()));
            g.multi_update_all(calls, cross(case)?)
        }
        (other, _) => return Err(format!("unknown op `{other}`")),
    };
    let out = out.map_err(|e| e.to_string())?;
    if let Some(order) = case.json["stack_order"].as_object() {
        for (ntype, relations) in order {
            let t = out.schema().ntype(ntype).map_err(|e| e.to_string())?;
            let ours: Vec<&str> = out.schema().etypes_into(t).map(|e| out.schema().etypes()[e].relation.as_str()).collect();
            if *relations != Value::from(ours.clone()) {
                return Err(format!("relations into `{ntype}` are stacked as {ours:?}, expected {relations}"));
            }
        }
    }
    let mut loss = Tensor::<1>::zeros([1], (device, case.dtype()?));
    for role in roles(case, "outputs")? {
        let ntype = role.strip_prefix("out/").ok_or_else(|| format!("output `{role}` names no node type"))?;
        let frame = out.nodes(ntype).map_err(|e| e.to_string())?;
        loss = loss
            + match case.rank("outputs", role)? {
                2 => weighted(case, role, frame.get::<2>("out").map_err(|e| e.to_string())?, device)?,
                3 => weighted(case, role, frame.get::<3>("out").map_err(|e| e.to_string())?, device)?,
                other => return Err(format!("outputs of rank {other} are not covered; add them to this match")),
            };
    }
    let grads = loss.backward();
    for role in roles(case, "grads")? {
        case.compare("grads", role, inputs.get(role).ok_or_else(|| format!("no input `{role}`"))?.grad(&grads))?;
    }
    Ok(())
}

/// Compares an output; its sum times its cotangent.
fn weighted<const D: usize>(case: &Case<'_>, role: &str, out: Tensor<D>, device: &Device) -> Result<Tensor<1>, String> {
    case.compare("outputs", role, Some(out.clone()))?;
    Ok((out * case.tensor("grad_outputs", role, device)?).sum())
}
