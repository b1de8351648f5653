//! Accounts for the memory of derived values.

use std::iter::Sum;
use std::ops::Add;
use std::sync::Arc;

/// Bytes of memory, on the host and on devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Bytes of host memory.
    pub host: usize,
    /// Bytes of device memory, without allocations that the backend does not report.
    pub device: usize,
}

impl Bytes {
    /// Bytes of host memory only.
    pub const fn host(bytes: usize) -> Self {
        Self { host: bytes, device: 0 }
    }
    /// Bytes of device memory only.
    pub const fn device(bytes: usize) -> Self {
        Self { host: 0, device: bytes }
    }
}

impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { host: self.host + other.host, device: self.device + other.device }
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// Formats a number of bytes with a binary unit: `17 B`, `1.5 MiB`.
pub fn readable_bytes(n: usize) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1 << 10 {
        return format!("{n} B");
    }
    let unit = ((n.ilog2() / 10 - 1) as usize).min(units.len() - 1);
    format!("{:.1} {}", n as f64 / (1u64 << (10 * (unit + 1))) as f64, units[unit])
}

/// Types that report how much memory they own in addition to their own size. [`Attached`](crate::Attached) requires it
/// of its values.
pub trait CountBytes {
    /// The memory that the value owns now. A part that is computed on first use counts once it is computed.
    fn bytes(&self) -> Bytes;
}

impl<T: Copy> CountBytes for Vec<T> {
    fn bytes(&self) -> Bytes {
        Bytes::host(size_of::<T>() * self.capacity())
    }
}

/// Counts the shared memory in full, once per `Arc`.
impl<T: Copy> CountBytes for Arc<[T]> {
    fn bytes(&self) -> Bytes {
        Bytes::host(size_of::<T>() * self.len())
    }
}

/// Counts the shared memory in full, once per `Arc`.
impl<T: CountBytes> CountBytes for Arc<T> {
    fn bytes(&self) -> Bytes {
        (**self).bytes()
    }
}

impl<T: CountBytes> CountBytes for Option<T> {
    fn bytes(&self) -> Bytes {
        self.as_ref().map_or_else(Bytes::default, T::bytes)
    }
}

impl<A: CountBytes, B: CountBytes> CountBytes for (A, B) {
    fn bytes(&self) -> Bytes {
        self.0.bytes() + self.1.bytes()
    }
}

macro_rules! nothing_beyond {
    ($($t:ty),*) => {$(
        impl CountBytes for $t {
            fn bytes(&self) -> Bytes {
                Bytes::default()
            }
        }
    )*};
}
nothing_beyond!(
    (),
    bool,
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    &'static str
);
