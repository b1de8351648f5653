//! Golden vectors: values and gradients that a correct implementation must reproduce, read from a folder
//! (`BURN_GNN_GOLDEN`, by default `../shared/golden` beside the workspace) and computed on every CPU backend.
//!
//! The folder's `manifest.json` lists cases of several families; a family that nothing here computes yet
//! is counted by name, one that nobody here has heard of is a failure. A new family is one more line in
//! [`FAMILIES`] and one function.
//!
//! This binary has no test harness, so that its summary lines are seen under a plain `cargo test`.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{BinaryOp, Reduce, gspmm};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// Computes one case on a device with autodiff; `Err` says where it differs.
type Run = fn(&Case<'_>, &Device) -> Result<(), String>;

/// Every family that a manifest may name; `None` where nothing computes it yet.
const FAMILIES: [(&str, Option<Run>); 7] = [
    ("gspmm", Some(run_gspmm)),
    ("gsddmm", None),
    ("edge_softmax", None),
    ("segment_reduce", None),
    ("typed_mm", None),
    ("hetero", None),
    ("layers", None),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|a| a == "--list") {
        println!("golden: test");
        return ExitCode::SUCCESS;
    }
    // `cargo test NAME` gives its filter to every test binary.
    let mut filters = args.iter().filter(|a| !a.starts_with('-')).peekable();
    if filters.peek().is_some() && !filters.any(|f| "golden".contains(f.as_str())) {
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    let folder =
        std::env::var_os("BURN_GNN_GOLDEN").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/golden"), PathBuf::from);
    if !folder.join("manifest.json").exists() {
        println!("golden: skipped, no manifest in {} (set BURN_GNN_GOLDEN to the folder)", folder.display());
        println!("test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        return ExitCode::SUCCESS;
    }
    match check_all(&folder) {
        Ok(0) => {
            println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
            ExitCode::SUCCESS
        }
        Ok(failed) => {
            println!("test result: FAILED. {failed} cases failed");
            ExitCode::FAILURE
        }
        Err(message) => {
            println!("golden: {message}");
            println!("test result: FAILED. the folder could not be read");
            ExitCode::FAILURE
        }
    }
}

/// Number of failures over all backends.
fn check_all(folder: &Path) -> Result<usize, String> {
    let read = |name: &str| std::fs::read(folder.join(name)).map_err(|e| format!("{}: {e}", folder.join(name).display()));
    let manifest: Value = serde_json::from_slice(&read("manifest.json")?).map_err(|e| format!("manifest.json: {e}"))?;
    let cases = manifest["cases"].as_array().ok_or("manifest.json: `cases` is no list")?;
    let graph_bytes = read("graphs.safetensors")?;
    let edges = SafeTensors::deserialize(&graph_bytes).map_err(|e| format!("graphs.safetensors: {e}"))?;
    let mut bytes = BTreeMap::new();
    for (name, run) in FAMILIES {
        if run.is_some() {
            bytes.insert(name, read(&format!("{name}.safetensors"))?);
        }
    }
    let mut tensors = BTreeMap::new();
    for (name, bytes) in &bytes {
        tensors.insert(*name, SafeTensors::deserialize(bytes).map_err(|e| format!("{name}.safetensors: {e}"))?);
    }
    let mut all_failed = 0;
    for (backend, device) in [("flex", Device::flex()), ("ndarray", Device::ndarray())] {
        let device = device.autodiff();
        let (mut passed, mut failures, mut unsupported) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
        for case in cases {
            let (id, family) = (text(case, "id")?, text(case, "family")?);
            match FAMILIES.iter().find(|f| f.0 == family) {
                None => failures.push(format!("{id}: unknown family `{family}`; this test knows {:?}", FAMILIES.map(|f| f.0))),
                Some((_, None)) => *unsupported.entry(family).or_default() += 1,
                Some((name, Some(run))) => {
                    let case = Case { json: case, manifest: &manifest, edges: &edges, tensors: &tensors[name] };
                    match run(&case, &device) {
                        Ok(()) => passed += 1,
                        Err(e) => failures.push(format!("{id}: {e}")),
                    }
                }
            }
        }
        let names: Vec<String> = unsupported.iter().map(|(n, c)| format!("{n} {c}")).collect();
        let tail = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        println!(
            "golden: {} cases, {passed} passed, {} failed, {} unsupported ({backend}){tail}",
            cases.len(),
            failures.len(),
            unsupported.values().sum::<usize>()
        );
        for f in &failures {
            println!("  {f}");
        }
        all_failed += failures.len();
    }
    Ok(all_failed)
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("`{key}` is missing or no string in {value}"))
}

/// One line of the manifest with what it refers to.
struct Case<'a> {
    json: &'a Value,
    manifest: &'a Value,
    edges: &'a SafeTensors<'a>,
    tensors: &'a SafeTensors<'a>,
}

impl Case<'_> {
    fn dtype(&self) -> Result<DType, String> {
        match text(self.json, "dtype")? {
            "f32" => Ok(DType::F32),
            "f64" => Ok(DType::F64),
            other => Err(format!("unknown dtype `{other}`")),
        }
    }

    /// The tensor that `group[role]` names, if it does.
    fn data(&self, group: &str, role: &str) -> Result<Option<TensorData>, String> {
        let Some(name) = self.json[group][role].as_str() else { return Ok(None) };
        let view = self.tensors.tensor(name).map_err(|e| format!("tensor `{name}`: {e}"))?;
        let (values, shape) = (view.data(), view.shape().to_vec());
        Ok(Some(match view.dtype() {
            Dtype::F32 => TensorData::new(values.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(), shape),
            Dtype::F64 => TensorData::new(values.chunks_exact(8).map(f64_le).collect(), shape),
            other => return Err(format!("tensor `{name}`: unexpected dtype {other:?}")),
        }))
    }

    fn rank(&self, group: &str, role: &str) -> Result<usize, String> {
        Ok(self.data(group, role)?.map_or(0, |d| d.shape().num_dims()))
    }

    /// A tensor of the case; tracked if it is an input.
    fn tensor<const D: usize>(&self, group: &str, role: &str, device: &Device) -> Result<Tensor<D>, String> {
        let data = self.data(group, role)?.ok_or_else(|| format!("no `{group}.{role}`"))?;
        let tensor = Tensor::from_data(data, (device, self.dtype()?));
        Ok(if group == "inputs" { tensor.require_grad() } else { tensor })
    }

    /// The relation of a graph that has only one.
    fn relation(&self) -> Result<Relation, String> {
        let graph = &self.manifest["graphs"][text(self.json, "graph")?];
        let r = &graph["relations"][0];
        let nodes = |end| text(r, end).map(|t| graph["num_nodes"][t].as_u64().unwrap_or(0) as usize);
        let ids = |end| -> Result<Vec<i64>, String> {
            let view = self.edges.tensor(text(r, end)?).map_err(|e| e.to_string())?;
            Ok(view.data().chunks_exact(8).map(|b| f64_le(b).to_bits() as i64).collect())
        };
        Relation::from_coo_i64(nodes("src_type")?, nodes("dst_type")?, &ids("src")?, &ids("dst")?).map_err(|e| e.to_string())
    }

    /// Compares with the tensor that `group[role]` names; a role without a name is not checked.
    fn compare<const D: usize>(&self, group: &str, role: &str, got: Option<Tensor<D>>) -> Result<(), String> {
        let Some(want) = self.data(group, role)? else { return Ok(()) };
        let place = format!("{group}.{role}");
        let got = got.ok_or_else(|| format!("{place}: nothing came out"))?.into_data();
        if got.shape() != want.shape() {
            return Err(format!("{place}: shape {:?}, expected {:?}", got.shape(), want.shape()));
        }
        let tolerance = if self.dtype()? == DType::F64 { 1e-10 } else { 2e-5 };
        let f64s = |d: TensorData| d.convert_dtype(DType::F64).try_into_vec::<f64>().map_err(|e| format!("{place}: {e:?}"));
        for (i, (a, b)) in f64s(got)?.into_iter().zip(f64s(want)?).enumerate() {
            // Written so that a NaN fails.
            let near = (a - b).abs() <= tolerance * (1.0 + b.abs());
            if !near {
                return Err(format!("{place}: element {i} is {a}, expected {b}"));
            }
        }
        Ok(())
    }

    /// Differentiates the sum of `out` times its cotangent.
    fn backward<const D: usize>(&self, out: Tensor<D>, device: &Device) -> Result<Gradients, String> {
        Ok((out * self.tensor("grad_outputs", "out", device)?).sum().backward())
    }
}

fn f64_le(b: &[u8]) -> f64 {
    f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])
}

fn run_gspmm(case: &Case<'_>, device: &Device) -> Result<(), String> {
    let op = match text(case.json, "op")? {
        "add" => BinaryOp::Add,
        "sub" => BinaryOp::Sub,
        "mul" => BinaryOp::Mul,
        "div" => BinaryOp::Div,
        "copy_lhs" => BinaryOp::CopyLhs,
        "copy_rhs" => BinaryOp::CopyRhs,
        other => return Err(format!("unknown op `{other}`")),
    };
    let reduce = match text(case.json, "reduce")? {
        "sum" => Reduce::Sum,
        "mean" => Reduce::Mean,
        "max" => Reduce::Max,
        "min" => Reduce::Min,
        other => return Err(format!("unknown reduce `{other}`")),
    };
    let rel = case.relation()?;
    let ranks = (case.rank("inputs", "lhs")?, case.rank("inputs", "rhs")?, case.rank("outputs", "out")?);
    match ranks {
        (1, 1, 1) => gspmm_case::<1, 1, 1>(case, device, &rel, op, reduce),
        (2, 2, 2) => gspmm_case::<2, 2, 2>(case, device, &rel, op, reduce),
        (3, 2, 3) => gspmm_case::<3, 2, 3>(case, device, &rel, op, reduce),
        (2, 3, 3) => gspmm_case::<2, 3, 3>(case, device, &rel, op, reduce),
        (3, 3, 3) => gspmm_case::<3, 3, 3>(case, device, &rel, op, reduce),
        (2, 0, 2) | (0, 2, 2) => gspmm_case::<2, 2, 2>(case, device, &rel, op, reduce),
        (3, 0, 3) | (0, 3, 3) => gspmm_case::<3, 3, 3>(case, device, &rel, op, reduce),
        other => Err(format!("ranks {other:?} are not covered; add them to this match")),
    }
}

fn gspmm_case<const L: usize, const R: usize, const O: usize>(
    case: &Case<'_>,
    device: &Device,
    rel: &Relation,
    op: BinaryOp,
    reduce: Reduce,
) -> Result<(), String> {
    // A copy has one operand; the other place is filled with something it must not look at.
    let lhs: Tensor<L> = if op.uses_lhs() { case.tensor("inputs", "lhs", device)? } else { Tensor::zeros([0; L], device) };
    let rhs: Tensor<R> = if op.uses_rhs() { case.tensor("inputs", "rhs", device)? } else { Tensor::zeros([0; R], device) };
    let out: Tensor<O> = gspmm(rel, op, reduce, lhs.clone(), rhs.clone());
    case.compare("outputs", "out", Some(out.clone()))?;
    let grads = case.backward(out, device)?;
    case.compare("grads", "lhs", lhs.grad(&grads))?;
    case.compare("grads", "rhs", rhs.grad(&grads))
}
