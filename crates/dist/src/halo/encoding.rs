//! Encodes halo features as messages of bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::{DType, Element, TensorData};
use bytemuck::Pod;
use half::{bf16, f16};

use super::routes::HaloPlan;
use crate::comm::{Failure, unwind};

/// One halo exchange: its name, and the node types that are exchanged with their feature sizes.
#[derive(Clone, Debug)]
pub struct HaloCall {
    pub(crate) name: Arc<str>,
    pub(crate) types: Arc<[usize]>,
    pub(crate) widths: Arc<[usize]>,
    /// Whether halo rows are sent to their owners (backward), instead of own rows to the ranks with a copy.
    pub(crate) reverse: bool,
    /// Whether the input is on an autodiff device.
    pub(crate) autodiff: bool,
    /// Whether the input of this rank is tracked.
    pub(crate) tracked: bool,
    /// Set by the exchange: whether the input of any rank is tracked.
    pub(crate) any: Arc<AtomicBool>,
}

impl HaloCall {
    pub(crate) fn new(name: &str, types: Vec<usize>, widths: Vec<usize>) -> Self {
        Self {
            name: name.into(),
            types: types.into(),
            widths: widths.into(),
            reverse: false,
            autodiff: false,
            tracked: false,
            any: Arc::default(),
        }
    }
    /// The transposed exchange, for gradients.
    pub(crate) fn transposed(&self) -> Self {
        let name = format!("{} backward", self.name).into();
        Self {
            name,
            reverse: !self.reverse,
            autodiff: false,
            tracked: false,
            any: Arc::default(),
            ..self.clone()
        }
    }
    /// Number of rows to send and to receive for each rank, per exchanged type.
    fn counts<'a>(&self, plan: &'a HaloPlan) -> Vec<(&'a [usize], &'a [usize])> {
        let of = |&t: &usize| {
            let p = &plan.types[t];
            if self.reverse { (&p.recv[..], &p.send[..]) } else { (&p.send[..], &p.recv[..]) }
        };
        self.types.iter().map(of).collect()
    }
}

const AUTODIFF: u8 = 1;
const TRACKED: u8 = 2;

fn tag(dtype: DType) -> Option<u8> {
    Some(match dtype {
        DType::F32 | DType::Flex32 => 1,
        DType::F64 => 2,
        DType::F16 => 3,
        DType::BF16 => 4,
        _ => return None,
    })
}

/// Sends the rows in `flat` (type by type, inside a type by receiver) and returns the received rows (type by type,
/// inside a type by sender). A failure unwinds, since operations of a backend cannot return errors.
pub(crate) fn exchange_rows(plan: &HaloPlan, call: &HaloCall, flat: &TensorData) -> TensorData {
    let (rank, size, dtype) = (plan.comm.rank(), plan.comm.size(), flat.dtype());
    let fail = |message: String| -> ! {
        unwind(Failure { rank, message: format!("`{}`: {message}", call.name) })
    };
    let Some(kind) = tag(dtype) else {
        fail(format!("halo rows must be f64, f32, f16 or bf16, got {dtype:?}"))
    };
    let counts = call.counts(plan);
    let width = |t: usize| call.widths[t] * dtype.size();
    let bytes = flat.as_bytes();
    let expected: usize =
        counts.iter().enumerate().map(|(t, c)| c.0.iter().sum::<usize>() * width(t)).sum();
    if bytes.len() != expected {
        fail(format!("expected {expected} bytes to send, got {}", bytes.len()));
    }

    let flags = (u8::from(call.autodiff) * AUTODIFF) | (u8::from(call.tracked) * TRACKED);
    let mut messages = vec![vec![flags, kind]; size];
    let mut at = 0;
    for (t, (out, _)) in counts.iter().enumerate() {
        for (message, rows) in messages.iter_mut().zip(*out) {
            let n = rows * width(t);
            message.extend_from_slice(&bytes[at..at + n]);
            at += n;
        }
    }
    let name = if call.reverse { "halo gradients" } else { "halo rows" };
    let received = plan
        .comm
        .all_to_all_v(&format!("{name} of {}", call.name), messages)
        .unwrap_or_else(|f| unwind(f));

    let mut bodies = Vec::with_capacity(size);
    for (p, message) in received.iter().enumerate() {
        let expected: usize = counts.iter().enumerate().map(|(t, c)| c.1[p] * width(t)).sum();
        let Some((head, body)) = message.split_at_checked(2) else {
            fail(format!("rank {p} sent {} bytes", message.len()))
        };
        if head[1] != kind || body.len() != expected {
            let widths = &call.widths;
            fail(format!(
                "expected {expected} bytes of {dtype:?} rows of widths {widths:?} from rank {p}, got {} bytes of dtype tag {} (own tag {kind}); \
                 dtype and widths must be the same on all ranks",
                body.len(),
                head[1]
            ));
        }
        if head[0] & TRACKED != 0 {
            call.any.store(true, Ordering::Relaxed);
            if !call.autodiff {
                fail(format!(
                    "rank {p} tracks gradients, rank {rank} runs on a device without autodiff; use the same kind of device on all ranks"
                ));
            }
        }
        bodies.push(body);
    }
    match dtype {
        DType::F64 => assemble::<f64>(&counts, call, &bodies),
        DType::F16 => assemble::<f16>(&counts, call, &bodies),
        DType::BF16 => assemble::<bf16>(&counts, call, &bodies),
        _ => assemble::<f32>(&counts, call, &bodies),
    }
}

/// Reorders rows from messages by sender, each type by type, to rows type by type, each by sender.
fn assemble<T: Pod + Element>(
    counts: &[(&[usize], &[usize])],
    call: &HaloCall,
    bodies: &[&[u8]],
) -> TensorData {
    let total: usize =
        counts.iter().enumerate().map(|(t, c)| c.1.iter().sum::<usize>() * call.widths[t]).sum();
    // A typed buffer, because received bytes are not aligned.
    let mut rows = vec![T::zeroed(); total];
    let out: &mut [u8] = bytemuck::cast_slice_mut(&mut rows);
    let mut cursors = vec![0; bodies.len()];
    let mut at = 0;
    for (t, (_, incoming)) in counts.iter().enumerate() {
        for ((body, cursor), rows) in bodies.iter().zip(&mut cursors).zip(*incoming) {
            let n = rows * call.widths[t] * size_of::<T>();
            out[at..at + n].copy_from_slice(&body[*cursor..*cursor + n]);
            *cursor += n;
            at += n;
        }
    }
    TensorData::new(rows, [total])
}
