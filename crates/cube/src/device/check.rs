//! Validates the operands of kernels, which are launched without bounds checks.
//!
//! Shapes, element types, devices and lengths of buffers are validated at every call, at negligible cost. Ids are validated
//! once, by the constructor of the object that has them: a [`Relation`](burn_gnn_graph::Relation), a plan or a
//! [`RowIndex`](crate::RowIndex).

use burn::tensor::DType;
use burn_cubecl::CubeDevice;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Unwraps an operand that the operator reads.
///
/// # Panics
/// If it is `None`.
#[track_caller]
pub(crate) fn required(op: &str, arg: &str, x: Option<CubeTensor>) -> CubeTensor {
    x.unwrap_or_else(|| panic!("{op}: `{arg}` is required"))
}

#[track_caller]
fn check_float(op: &str, arg: &str, x: &CubeTensor) {
    assert!(x.dtype.is_float(), "{op}: `{arg}` must have a float type, got {:?}", x.dtype);
}

/// The bytes of a buffer that the shape and strides of a tensor address, and the length of its buffer.
pub(crate) fn bytes_held(x: &CubeTensor) -> (u128, u128) {
    let (shape, strides) = (x.meta.shape(), x.meta.strides());
    let last = shape
        .iter()
        .zip(&strides[..])
        .map(|(&n, &stride)| n.saturating_sub(1) as u128 * stride as u128)
        .sum::<u128>();
    let entries = if x.meta.num_elements() == 0 { 0 } else { last + 1 };
    (entries * x.dtype.size() as u128, u128::from(x.handle.size_in_used()))
}

/// Validates the operands of one call of an operator, which must have one element type and device.
pub(crate) struct Call {
    op: &'static str,
    /// Name of the operand that determines element type and device.
    like: &'static str,
    dtype: DType,
    device: CubeDevice,
}

impl Call {
    /// Takes element type and device from the operand `arg`, a tensor of floats. The tensor is not stored, because an
    /// additional reference would prevent in-place updates.
    #[track_caller]
    pub(crate) fn new(op: &'static str, arg: &'static str, like: &CubeTensor) -> Self {
        check_float(op, arg, like);
        Self { op, like: arg, dtype: like.dtype, device: like.device.clone() }
    }

    /// Validates that `x` has `rows` rows of `width` entries, in any number of axes, with the element type and device of
    /// the call. Returns it in row-major order.
    #[track_caller]
    pub(crate) fn rows(&self, arg: &str, x: CubeTensor, rows: usize, width: usize) -> CubeTensor {
        self.rows_of(arg, x, rows, width, &[self.dtype])
    }

    /// [`rows`](Self::rows) with one of these element types.
    #[track_caller]
    pub(crate) fn rows_of(
        &self,
        arg: &str,
        x: CubeTensor,
        rows: usize,
        width: usize,
        dtypes: &[DType],
    ) -> CubeTensor {
        let op = self.op;
        let shape = x.meta.shape();
        let fits =
            shape.first() == Some(&rows) && rows.checked_mul(width) == Some(x.meta.num_elements());
        assert!(
            fits,
            "{op}: `{arg}` must have {rows} rows of {width} entries, got shape {:?}",
            &shape[..]
        );
        assert!(
            dtypes.contains(&x.dtype),
            "{op}: `{arg}` must have element type {dtypes:?}, got {:?}",
            x.dtype
        );
        self.on_device(arg, &x);
        // Before `into_contiguous`, which reads the buffer by shape and strides.
        self.check_buffer(arg, &x);
        into_contiguous(x)
    }

    /// [`rows`](Self::rows) with any float type.
    #[track_caller]
    pub(crate) fn floats(&self, arg: &str, x: CubeTensor, rows: usize, width: usize) -> CubeTensor {
        check_float(self.op, arg, &x);
        let dtype = x.dtype;
        self.rows_of(arg, x, rows, width, &[dtype])
    }

    /// [`rows`](Self::rows) of edge ids that a kernel has written.
    #[track_caller]
    pub(crate) fn ids(&self, arg: &str, x: CubeTensor, rows: usize, width: usize) -> CubeTensor {
        self.rows_of(arg, x, rows, width, &[DType::I32, DType::U32])
    }

    /// Validates that an array has at least `entries` entries and is on the device of the call.
    #[track_caller]
    pub(crate) fn array(&self, arg: &str, x: &CubeTensor, found: usize, entries: usize) {
        assert!(found >= entries, "{}: `{arg}` must have {entries} entries, got {found}", self.op);
        self.on_device(arg, x);
    }

    #[track_caller]
    fn on_device(&self, arg: &str, x: &CubeTensor) {
        let Self { op, like, device, .. } = self;
        assert!(
            x.device == *device,
            "{op}: `{arg}` must be on the device of `{like}`, {device:?}, got {:?}",
            x.device
        );
    }

    /// Unwraps an operand that the operator reads.
    #[track_caller]
    pub(crate) fn required(&self, arg: &str, x: Option<CubeTensor>) -> CubeTensor {
        required(self.op, arg, x)
    }

    /// The shape of a tensor with two axes.
    #[track_caller]
    pub(crate) fn table(&self, arg: &str, x: &CubeTensor) -> [usize; 2] {
        match x.meta.shape()[..] {
            [rows, width] => [rows, width],
            ref other => panic!("{}: `{arg}` must have two axes, got shape {other:?}", self.op),
        }
    }

    /// Validates that all entries of a tensor are inside of its buffer. The fields of `CubeTensor` are public, so a caller
    /// can construct one for which this is false.
    #[track_caller]
    fn check_buffer(&self, arg: &str, x: &CubeTensor) {
        let (bytes, found) = bytes_held(x);
        let shape = &x.meta.shape()[..];
        assert!(
            bytes <= found,
            "{}: `{arg}` has a buffer of {found} bytes, but its shape {shape:?} needs {bytes}",
            self.op
        );
    }
}
