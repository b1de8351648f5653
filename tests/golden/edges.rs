//! The families of results per edge: `gsddmm` and `edge_softmax`.

use burn::tensor::{Device, Tensor};
use burn_gnn::graph::Relation;
use burn_gnn::ops::{NormBy, SddmmOp, Target, edge_softmax, edge_softmax_on, gsddmm};

use super::{Case, f64_le, text};

fn target(case: &Case<'_>, key: &str) -> Result<Target, String> {
    match text(case.json, key)? {
        "u" => Ok(Target::Src),
        "v" => Ok(Target::Dst),
        "e" => Ok(Target::Edge),
        other => Err(format!("unknown target `{other}`")),
    }
}

pub(crate) fn run_gsddmm(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let op = match text(case.json, "op")? {
        "add" => SddmmOp::Add,
        "sub" => SddmmOp::Sub,
        "mul" => SddmmOp::Mul,
        "div" => SddmmOp::Div,
        "dot" => SddmmOp::Dot,
        "copy_lhs" => SddmmOp::CopyLhs,
        "copy_rhs" => SddmmOp::CopyRhs,
        other => return Err(format!("unknown op `{other}`")),
    };
    let ranks = (case.rank("inputs", "lhs")?, case.rank("inputs", "rhs")?, case.rank("outputs", "out")?);
    match ranks {
        (2, 2, 2) | (2, 0, 2) | (0, 2, 2) => gsddmm_case::<2, 2, 2>(case, device, op),
        (3, 3, 3) | (3, 0, 3) | (0, 3, 3) => gsddmm_case::<3, 3, 3>(case, device, op),
        (3, 2, 3) => gsddmm_case::<3, 2, 3>(case, device, op),
        (2, 3, 3) => gsddmm_case::<2, 3, 3>(case, device, op),
        other => Err(format!("ranks {other:?} are not covered; add them to this match")),
    }
}

fn gsddmm_case<const L: usize, const R: usize, const O: usize>(case: &Case<'_>, device: &Device, op: SddmmOp) -> Result<(), String> {
    // A copy has one operand; the other place is filled with something it must not look at.
    let lhs: Tensor<L> = if op.uses_lhs() { case.tensor("inputs", "lhs", device)? } else { Tensor::zeros([0; L], device) };
    let rhs: Tensor<R> = if op.uses_rhs() { case.tensor("inputs", "rhs", device)? } else { Tensor::zeros([0; R], device) };
    let (l, r) = (target(case, "lhs_target")?, target(case, "rhs_target")?);
    let out: Tensor<O> = gsddmm(&case.relation()?, op, l, r, lhs.clone(), rhs.clone());
    case.compare("outputs", "out", Some(out.clone()))?;
    if !case.has_gradients() {
        return Ok(());
    }
    let grads = case.backward(out, device)?;
    if op.uses_lhs() {
        case.compare("grads", "lhs", lhs.grad(&grads))?;
    }
    if op.uses_rhs() {
        case.compare("grads", "rhs", rhs.grad(&grads))?;
    }
    Ok(())
}

pub(crate) fn run_edge_softmax(case: &Case<'_>, device: &Device) -> Result<(), String> {
    match case.rank("inputs", "logits")? {
        1 => edge_softmax_case::<1>(case, device),
        2 => edge_softmax_case::<2>(case, device),
        3 => edge_softmax_case::<3>(case, device),
        other => Err(format!("logits of rank {other} are not covered; add them to this match")),
    }
}

fn edge_softmax_case<const D: usize>(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let norm_by = match text(case.json, "norm_by")? {
        "dst" => NormBy::Dst,
        "src" => NormBy::Src,
        other => return Err(format!("unknown norm_by `{other}`")),
    };
    let relation: Relation = case.relation()?;
    let logits: Tensor<D> = case.tensor("inputs", "logits", device)?;
    let out = match case.json["ints"]["eids"].as_str() {
        None => edge_softmax(&relation, logits.clone(), norm_by),
        Some(name) => {
            let view = case.tensors.tensor(name).map_err(|e| format!("tensor `{name}`: {e}"))?;
            let eids: Vec<u32> = view.data().chunks_exact(8).map(|b| f64_le(b).to_bits() as u32).collect();
            edge_softmax_on(&relation, &eids, logits.clone(), norm_by)
        }
    };
    case.compare("outputs", "out", Some(out.clone()))?;
    if !case.has_gradients() {
        return Ok(());
    }
    let grads = case.backward(out, device)?;
    case.compare("grads", "logits", logits.grad(&grads))
}
