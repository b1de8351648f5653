//! Families with one result per edge: `gsddmm` and `edge_softmax`.

use burn::tensor::{Device, Tensor};
use burn_gnn::graph::Relation;
use burn_gnn::ops::{NormBy, SddmmOp, Target, edge_softmax, edge_softmax_on, gsddmm};

use super::{Case, text};

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
    match (case.rank("inputs", "lhs")?, case.rank("inputs", "rhs")?) {
        (l, 0) => ranked!(l, D => gsddmm_case::<D, D, D>(case, device, op)),
        (0, r) => ranked!(r, D => gsddmm_case::<D, D, D>(case, device, op)),
        (l, r) => ranked!(l, L => ranked!(r, R => {
            const O: usize = if L > R { L } else { R };
            gsddmm_case::<L, R, O>(case, device, op)
        })),
    }
}

fn gsddmm_case<const L: usize, const R: usize, const O: usize>(
    case: &Case<'_>,
    device: &Device,
    op: SddmmOp,
) -> Result<(), String> {
    // A copy has one operand; the other argument is a tensor that it must not read.
    let lhs: Tensor<L> = if op.uses_lhs() {
        case.tensor("inputs", "lhs", device)?
    } else {
        Tensor::zeros([0; L], device)
    };
    let rhs: Tensor<R> = if op.uses_rhs() {
        case.tensor("inputs", "rhs", device)?
    } else {
        Tensor::zeros([0; R], device)
    };
    let (l, r) = (target(case, "lhs_target")?, target(case, "rhs_target")?);
    let out: Tensor<O> = gsddmm(&case.relation()?, op, l, r, lhs.clone(), rhs.clone());
    case.compare("outputs", "out", out.clone())?;
    if !case.has_gradients() {
        return Ok(());
    }
    let grads = case.backward(out, device)?;
    if op.uses_lhs() {
        case.compare_grad("lhs", &lhs, &grads)?;
    }
    if op.uses_rhs() {
        case.compare_grad("rhs", &rhs, &grads)?;
    }
    Ok(())
}

pub(crate) fn run_edge_softmax(case: &Case<'_>, device: &Device) -> Result<(), String> {
    ranked!(case.rank("inputs", "logits")?, D => edge_softmax_case::<D>(case, device))
}

fn edge_softmax_case<const D: usize>(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let norm_by = match text(case.json, "norm_by")? {
        "dst" => NormBy::Dst,
        "src" => NormBy::Src,
        other => return Err(format!("unknown norm_by `{other}`")),
    };
    let relation: Relation = case.relation()?;
    let logits: Tensor<D> = case.tensor("inputs", "logits", device)?;
    let out = if case.json["ints"].get("eids").is_some() {
        let eids = case.ids(&case.json["ints"], "eids")?;
        let eids: Vec<u32> = eids
            .into_iter()
            .map(u32::try_from)
            .collect::<Result<_, _>>()
            .map_err(|e| format!("`eids`: {e}"))?;
        edge_softmax_on(&relation, &eids, logits.clone(), norm_by)
    } else {
        edge_softmax(&relation, logits.clone(), norm_by)
    };
    case.compare("outputs", "out", out.clone())?;
    if !case.has_gradients() {
        return Ok(());
    }
    let grads = case.backward(out, device)?;
    case.compare_grad("logits", &logits, &grads)
}
